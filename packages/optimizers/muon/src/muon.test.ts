import { functional, parameter, viewAsComplex, zeros } from "@opt/core";
import { expectCode, muonGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Muon, type MuonOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["momentum below 0", { momentum: -0.1 }],
  ["weightDecay NaN", { weightDecay: Number.NaN }],
  ["two coefficients", { nsCoefficients: [1, 2] }],
  ["a coefficient that is no number", { nsCoefficients: [1, 2, "3"] }],
  ["half a step", { nsSteps: 1.5 }],
  ["100 steps", { nsSteps: 100 }],
  ["eps below 0", { eps: -1 }],
  ["a number for nesterov", { nesterov: 1 }],
  ["an unknown factor of lr", { adjustLrFn: "moonshot" }],
  ["betas, which Muon has not", { betas: [0.9, 0.999] }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([[1]]);
  expectCode("BAD_ARGUMENT", () => new Muon([w], options as Partial<MuonOptions>));
  expectCode("BAD_ARGUMENT", () => new Muon([{ params: [w], ...options }]));
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

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new Muon([parameter([[1]])]).groups[0]!;
  expect(options).toEqual({
    lr: 1e-3,
    weightDecay: 0.1,
    momentum: 0.95,
    nesterov: true,
    nsCoefficients: [3.4445, -4.775, 2.0315],
    eps: 1e-7,
    nsSteps: 5,
    adjustLrFn: "original",
    maximize: false,
  });
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
