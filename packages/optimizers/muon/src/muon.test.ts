import { functional, parameter, viewAsComplex, zeros } from "@opt/core";
import { expectCode, muonGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Muon } from "./index";

optimizerSuite(exported, {
  Muon: {
    defaults: {
      lr: 1e-3,
      weightDecay: 0.1,
      momentum: 0.95,
      nesterov: true,
      nsCoefficients: [3.4445, -4.775, 2.0315],
      eps: 1e-7,
      nsSteps: 5,
      adjustLrFn: "original",
      maximize: false,
    },
    wrong: {
      lr: [-1],
      momentum: [-0.1],
      weightDecay: [Number.NaN],
      nsCoefficients: [
        [1, 2],
        [1, 2, "3"],
      ],
      nsSteps: [1.5, 100],
      eps: [-1],
      nesterov: [1],
      adjustLrFn: ["moonshot"],
      betas: [[0.9, 0.999]],
    },
  },
});

it.each([[], [3], [2, 3, 4]])(
  "rejects a parameter of shape [%s %s %s], named, at once and in a later group",
  (...shape) => {
    const w = parameter(new Float32Array(shape.reduce((size, n) => size * n, 1)), { shape, name: "conv" });
    expect(() => new Muon([w])).toThrow("conv");
    expectCode("BAD_SHAPE", () => new Muon([w]));
    const optimizer = new Muon([parameter([[1]])]);
    expectCode("BAD_SHAPE", () => optimizer.addGroup({ params: [w] }));
    expect(optimizer.groups).toHaveLength(1);
  },
);

it("rejects complex matrices, whose directions would be half as long as they", () => {
  const z = parameter(viewAsComplex(zeros([2, 2, 2])).clone());
  expectCode("BAD_DTYPE", () => new Muon([z]));
});

it("is not differentiated through", () => {
  expectCode("UNSUPPORTED", () => functional(Muon));
});

it.each(muonGoldens().map((golden) => [golden.shape.join(" x "), golden.options, golden] as const))(
  "PyTorch's float32: %s, %o",
  async (_, { lr = 1e-3, adjustLrFn }, { shape, param, momentum, ...run }) => {
    const { trace, state } = await runOptimizer(Muon, { ...run, shape });
    expect(state.get("momentum_buffer")).toAgreeWith(momentum);
    const [rows, columns] = shape;
    const factor = adjustLrFn ? 0.2 * Math.sqrt(Math.max(rows, columns)) : Math.sqrt(Math.max(1, rows / columns));
    expect(trace.at(-1)).toAgreeWith(param, { absolute: 0.1 * factor * Number(lr), relative: 0 });
  },
);
