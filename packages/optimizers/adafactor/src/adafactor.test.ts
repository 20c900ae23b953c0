import { functional, parameter, type Tensor, tensor } from "@opt/core";
import { adafactorGoldens, expectCode, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adafactor } from "./index";

optimizerSuite(exported, {
  Adafactor: {
    defaults: { lr: 1e-2, beta2Decay: -0.8, eps: [null, 1e-3], d: 1, weightDecay: 0, maximize: false },
    wrong: {
      lr: [-1],
      beta2Decay: [0.1, Number.NaN],
      eps: [[1e-3], 1e-3, [-1, 1e-3], [null, null]],
      d: [0.5],
      weightDecay: [-1],
      betas: [[0.9, 0.999]],
    },
  },
});

it.each(adafactorGoldens())("PyTorch's float64, $shape $options", async ({ end, ...run }) => {
  const { trace, state } = await runOptimizer(Adafactor, { ...run, dtype: "f64" });
  const ours = new Map(state).set("param", trace.at(-1)!);
  for (const [key, expected] of Object.entries(end)) {
    expect(ours.get(key), key).toAgreeWith(expected, { absolute: 1e-12, relative: 1e-12 });
  }
});

/** Parameters of 0 to 3 dimensions, stepped once. */
function stepped(dtype: "f32" | "bf16" = "f32") {
  const shapes = [[], [3], [2, 3], [2, 3, 4]];
  const params = shapes.map((shape) => {
    const size = shape.reduce((product, n) => product * n, 1);
    const numbers = (scale: number) => Array.from({ length: size }, (_, i) => scale * (i + 1));
    const param = parameter(numbers(0.5), { shape, dtype });
    param.grad = tensor(numbers(-0.1), { shape, dtype });
    return param;
  });
  const optimizer = new Adafactor(params, { lr: 0.1 });
  optimizer.step();
  return { params, optimizer };
}

it("stores a number for each row and each column", () => {
  const { state } = stepped().optimizer.stateDict();
  const shapes = Object.values(state).map(({ step, ...tensors }) =>
    Object.fromEntries(Object.entries(tensors).map(([key, value]) => [key, (value as Tensor).shape])),
  );
  expect(shapes).toEqual([
    { variance: [] },
    { variance: [3] },
    { row_var: [2, 1], col_var: [1, 3] },
    { row_var: [2, 3, 1], col_var: [2, 1, 4] },
  ]);
});

it("goes on from its state, and rejects one of other shapes", () => {
  const [straight, resumed] = [stepped(), stepped()];
  const saved = resumed.optimizer.stateDict();
  const other = new Adafactor(resumed.params);
  other.loadStateDict(saved);
  straight.optimizer.step();
  other.step();
  const words = ({ params }: typeof straight) => params.map((param) => [...param.dataSync()]);
  expect(words(resumed)).toEqual(words(straight));
  const { row_var: row, ...entry } = saved.state["2"]!;
  const wrong = (row_var: Tensor) => ({ ...saved, state: { ...saved.state, "2": { ...entry, row_var } } });
  expectCode("BAD_STATE", () => other.loadStateDict(wrong((row as Tensor).reshape([1, 2]))));
});

it.each([{ stateDType: "bf16" }, { lazyMode: true }] as const)("rejects %o by name", (options) => {
  expectCode("UNSUPPORTED", () => new Adafactor([parameter([[1]])], options));
  expect(() => new Adafactor([parameter([[1]])], options)).toThrow(Object.keys(options)[0]);
});

it("is not differentiated through", () => {
  expectCode("UNSUPPORTED", () => functional(Adafactor));
});
