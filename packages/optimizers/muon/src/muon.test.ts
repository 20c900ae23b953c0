import { functional, Generator, parameter, randn, type Tensor, viewAsComplex, zeros } from "@opt/core";
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

/** Parameters after three steps. */
function stepped(
  starts: readonly Tensor[],
  gradients: readonly Tensor[],
  options: Partial<MuonOptions> = {},
): Tensor[] {
  const params = starts.map((start) => parameter(start.clone()));
  const optimizer = new Muon(params, { lr: 0.1, ...options });
  for (let t = 1; t <= 3; t++) {
    for (const [i, param] of params.entries()) param.grad = gradients[i]!.mul(1 / t);
    optimizer.step();
  }
  return params;
}

it("more matrices than come in one product have the words of each alone", () => {
  const generator = new Generator(5);
  const [start, gradient] = [0, 1].map(() => randn([2, 300_000], { generator })) as [Tensor, Tensor];
  const [one, two] = stepped([start, start], [gradient, gradient], { nsSteps: 1 });
  expect(one!.sub(two!).abs().max().dataSync()[0]).toBe(0);
  const [alone] = stepped([start], [gradient], { nsSteps: 1 });
  expect(one!.sub(alone!).abs().max().dataSync()[0]).toBe(0);
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

it("the Polar Express brings every singular value from 1e-3 on near 1, and stays below 1.01", () => {
  for (let s = 1e-3; s <= 1; s *= 1.01) {
    let x = s;
    for (const [a, b, c] of POLAR_EXPRESS) x = a * x + b * x ** 3 + c * x ** 5;
    expect(Math.abs(x - 1)).toBeLessThan(1e-3);
  }
});
