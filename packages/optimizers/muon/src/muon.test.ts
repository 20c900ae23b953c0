import { compile, functional, Generator, parameter, randn, type Tensor, tensor, viewAsComplex, zeros } from "@opt/core";
import { expectCode, muonGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Muon, type MuonOptions, POLAR_EXPRESS } from "./index";

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
      neuronBeta: null,
      heads: 1,
      maximize: false,
    },
    wrong: {
      lr: [-1],
      momentum: [-0.1],
      weightDecay: [Number.NaN],
      nsCoefficients: [
        [1, 2],
        [1, 2, "3"],
        [],
        [
          [1, 2, 3],
          [1, 2],
        ],
      ],
      nsSteps: [1.5, 100],
      eps: [-1],
      nesterov: [1],
      adjustLrFn: ["moonshot"],
      neuronBeta: [1, "0.95"],
      heads: [0, 1.5],
      betas: [[0.9, 0.999]],
    },
  },
});

it.each([[], [3], [2, 1, 2, 1, 2]])(
  "rejects a parameter of shape [%s %s %s %s %s], named, at once and in a later group",
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

/** Parameters after some steps. */
function stepped(
  starts: readonly Tensor[],
  gradients: readonly Tensor[],
  options: Partial<MuonOptions> = {},
  steps = 3,
): Tensor[] {
  const params = starts.map((start) => parameter(start.clone()));
  const optimizer = new Muon(params, { lr: 0.1, ...options });
  for (let t = 1; t <= steps; t++) {
    for (const [i, param] of params.entries()) param.grad = gradients[i]!.mul(1 / t);
    optimizer.step();
  }
  return params;
}

it("more matrices than come in one product have the words of each alone", () => {
  const generator = new Generator(5);
  const [start, ...gradients] = [0, 1, 2].map(() => randn([2, 262_145], { generator }));
  const together = stepped([start!, start!], gradients, { nsSteps: 1 }, 1);
  for (const [i, gradient] of gradients.entries()) {
    const [alone] = stepped([start!], [gradient], { nsSteps: 1 }, 1);
    expect(together[i]!.sub(alone!).abs().max().dataSync()[0]).toBe(0);
  }
});

it("each iteration has its coefficients, and the last ones go on", () => {
  const generator = new Generator(6);
  const [start, gradient] = [0, 1].map(() => randn([4, 6], { generator })) as [Tensor, Tensor];
  const run = (options: Partial<MuonOptions>) => stepped([start], [gradient], options)[0]!.tolist();
  const [a, b] = [
    [3, -3, 1],
    [1.5, -0.5, 0],
  ] as const;
  expect(run({ nsCoefficients: [a], nsSteps: 3 })).toEqual(run({ nsCoefficients: a, nsSteps: 3 }));
  expect(run({ nsCoefficients: [a, b], nsSteps: 3 })).toEqual(run({ nsCoefficients: [a, b, b], nsSteps: 3 }));
  expect(run({ nsCoefficients: [a, b], nsSteps: 3 })).not.toEqual(run({ nsCoefficients: [b, a], nsSteps: 3 }));
});

const NEURONS: Partial<MuonOptions> = { neuronBeta: 0.75, nsSteps: 2 };
const drawn = (shape: readonly number[], seed: number) => randn(shape, { generator: new Generator(seed) });

it("balances rows, and keeps the norm of each matrix", () => {
  const gradient = drawn([6, 40], 3).mul(tensor([1, 2, 4, 8, 16, 0]).unsqueeze(1));
  const lengths = (options: Partial<MuonOptions>) => {
    const w = parameter(zeros([6, 40]));
    w.grad = gradient;
    new Muon([w], { lr: 1, weightDecay: 0, nsSteps: 0, ...options }).step();
    return w.mul(w).sum(1).sqrt().tolist() as number[];
  };
  const [plain, balanced] = [lengths({}), lengths({ neuronBeta: 0.5 })];
  expect(plain[4]! / plain[0]!).toBeGreaterThan(8);
  for (const length of balanced.slice(0, 5)) expect(length / balanced[0]!).toBeCloseTo(1, 4);
  expect(balanced[5]).toBe(0);
  expect(Math.hypot(...balanced)).toBeCloseTo(Math.hypot(...plain), 4);
});

it("compiled has the words of eager under a schedule of neuronBeta, which begins late", () => {
  const run = (isCompiled: boolean) => {
    const w = parameter(drawn([4, 6], 4));
    const optimizer = new Muon([w], { lr: 0.1 });
    const body = () => optimizer.step();
    const step = isCompiled ? compile(body) : body;
    for (let t = 0; t < 6; t++) {
      if (t > 1) optimizer.groups[0]!.neuronBeta = 1 - 1 / (t + 1);
      w.grad = drawn([4, 6], 10 + t);
      step();
    }
    return [w.tolist(), (optimizer.stateDict().state["0"]!.neuron_sq as Tensor).tolist()];
  };
  expect(run(true)).toEqual(run(false));
});

it("goes on after a save, with other heads too", () => {
  const run = (isSaved: boolean) => {
    let w = parameter(drawn([4, 6], 4));
    let optimizer = new Muon([w], { ...NEURONS, heads: 2 });
    for (let t = 0; t < 4; t++) {
      if (t === 2) {
        const { groups, state } = optimizer.stateDict();
        if (isSaved) {
          w = parameter(w.detach());
          optimizer = new Muon([w]);
          optimizer.loadStateDict({ groups, state });
        }
        optimizer.groups[0]!.heads = 4;
      }
      w.grad = drawn([4, 6], 10 + t);
      optimizer.step();
    }
    return w.tolist();
  };
  expect(run(true)).toEqual(run(false));
});

it("rejects heads that do not divide the rows, and other formats of averages of rows, before a step", () => {
  const w = parameter([[1], [2], [3]]);
  const optimizer = new Muon([w], { heads: 2 });
  w.grad = tensor([[1], [2], [3]]);
  expectCode("BAD_SHAPE", () => optimizer.step());
  expect(w.tolist()).toEqual([[1], [2], [3]]);
  expectCode("UNSUPPORTED", () => new Muon([w], { neuronBeta: 0.5, stateDType: "bf16" }));
  const narrow = new Muon([w], { stateDType: "bf16" });
  narrow.groups[0]!.neuronBeta = 0.5;
  expectCode("UNSUPPORTED", () => narrow.step());
});

it("the Polar Express brings every singular value from 1e-3 on near 1, and stays below 1.01", () => {
  for (let s = 1e-3; s <= 1; s *= 1.01) {
    let x = s;
    for (const [a, b, c] of POLAR_EXPRESS) x = a * x + b * x ** 3 + c * x ** 5;
    expect(Math.abs(x - 1)).toBeLessThan(1e-3);
  }
});
