import { clipGradNorm, parameter, type Tensor, tensor } from "@opt/core";
import {
  expectCode,
  expectGoldenTrace,
  goldenRun,
  kerasTable,
  type OptimizerClass,
  optimizerSuite,
  runOptimizer,
  semanticsGolden,
  type Tolerance,
} from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { Adam, type AdamOptions, AdamW } from "./index";

const adam = { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, amsgrad: false, maximize: false };
const wrongForAdam = {
  lr: [-1, Number.NaN],
  eps: [-1e-8, Number.NaN],
  weightDecay: [-1],
  betas: [
    [1, 0],
    [0.9, 0.9, 0.9],
  ],
  amsgrad: ["yes"],
  momentumDecay: [0.004],
};
optimizerSuite(exported, {
  Adam: { defaults: { ...adam, weightDecay: 0, decoupledWeightDecay: false }, wrong: wrongForAdam },
  AdamW: {
    defaults: { ...adam, weightDecay: 0.01, decoupledWeightDecay: true },
    wrong: { ...wrongForAdam, decoupledWeightDecay: [false, 1, Symbol("yes")] },
  },
  SparseAdam: {
    defaults: { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-8, maximize: false, lazyMode: true },
    wrong: { lr: [-1], eps: [0], betas: [[0.9, 1]], weightDecay: [0.1], lazyMode: [false] },
  },
});

function train(Optimizer: typeof Adam | typeof AdamW, options: Partial<AdamOptions>, steps = 3) {
  const w = parameter([1, 2]);
  const optimizer = new Optimizer([w], options);
  const step = () => {
    w.grad = tensor([0.5, -1]);
    optimizer.step();
  };
  for (let i = 0; i < steps; i++) step();
  return { w, optimizer, step };
}

describe("AdamW", () => {
  it("is Adam with decoupled decay", () => {
    const [adam, adamw] = [
      train(Adam, { weightDecay: 0.1, decoupledWeightDecay: true }),
      train(AdamW, { weightDecay: 0.1 }),
    ];
    expect(adam.w.dataSync()).toAgreeWith(adamw.w.dataSync());
  });

  it("is not coupled by a state", () => {
    const [adam, adamw] = [train(Adam, { weightDecay: 0.1 }), train(AdamW, {})];
    adamw.optimizer.loadStateDict(adam.optimizer.stateDict());
    expect(adamw.optimizer.groups[0]).toMatchObject({ weightDecay: 0.1, decoupledWeightDecay: true });
  });

  it("makes an Adam decoupled that loads its state, as in PyTorch", () => {
    const [adam, adamw] = [train(Adam, {}), train(AdamW, {})];
    adam.optimizer.loadStateDict(adamw.optimizer.stateDict());
    expect(adam.optimizer.groups[0]).toMatchObject({ weightDecay: 0.01, decoupledWeightDecay: true });
  });
});

describe("AMSGrad", () => {
  it("rejects a state without it, and starts it from zero where it is turned on later", () => {
    const [plain, amsgrad] = [train(Adam, {}), train(Adam, { amsgrad: true })];
    const { groups, state } = plain.optimizer.stateDict();
    expectCode("BAD_STATE", () =>
      amsgrad.optimizer.loadStateDict({ groups: [{ ...groups[0]!, amsgrad: true }], state }),
    );
    plain.optimizer.groups[0]!.amsgrad = true;
    plain.step();
    const { exp_avg_sq, max_exp_avg_sq } = plain.optimizer.stateDict().state["0"]! as unknown as Record<string, Tensor>;
    expect(max_exp_avg_sq!.dataSync()).toAgreeWith(exp_avg_sq!.dataSync());
  });
});

it.each([
  [-0.1303, 0.0446, -0.01027500256896019],
  [3.4558, 33.0437, 17.385799407958984],
])("beta1 = 0.5 interpolates from PyTorch's other end: %d, then %d", (one, two, expected) => {
  const w = parameter([0]);
  const optimizer = new AdamW([w], { betas: [0.5, 0.999] });
  for (const gradient of [one, two]) {
    w.grad = tensor([gradient]);
    optimizer.step();
  }
  expect(Number(optimizer.stateDict().state["0"]!.exp_avg)).toBe(expected); // the other form is 1 ulp off
});

describe("Keras, whose eps is added to the uncorrected square root", () => {
  // With eps 1e-7 that is far below the tables' own tolerance; the AdamW table has eps 2, which no option of ours expresses.
  it("Adam with AMSGrad in the published table", async () => {
    const run = kerasTable("keras_adam_amsgrad_golden", "Adam");
    const { trace } = await runOptimizer(Adam, run);
    run.trace.forEach((expected, step) => {
      expect(trace[step]).toAgreeWith(expected, { absolute: 5e-4, relative: 5e-4 });
    });
  });

  const published = { absolute: 1e-4, relative: 1e-4 };
  // The eps of the first step is 30 times as large in Keras: 3e-6 of lr 0.5 for a gradient of 1.
  const run = { absolute: 6e-6, relative: 0 };
  it.each<[string, OptimizerClass, object, Tolerance]>([
    ["keras_adam_single_step", Adam, { lr: 0.5 }, published],
    ["keras_adamw_single_step", AdamW, { lr: 0.5, weightDecay: 0.004 }, published],
    ["keras3.15.1_run_adam_amsgrad_golden", Adam, { amsgrad: true }, run],
    ["keras3.15.1_run_adam_single", Adam, { lr: 0.5 }, run],
    ["keras3.15.1_run_adamw_single", AdamW, { lr: 0.5, weightDecay: 0.004 }, run],
  ])("%s", (id, Optimizer, options, tolerance) =>
    expectGoldenTrace(id, Optimizer, { options: { eps: 1e-7, ...options } }, tolerance),
  );

  it.each<[string, OptimizerClass, object]>([
    ["keras_adam_weight_decay", Adam, { decoupledWeightDecay: true }],
    ["keras_adamw_weight_decay", AdamW, {}],
  ])("%s, three times over", async (id, Optimizer, extra) => {
    const options = { lr: 1, weightDecay: 0.004, eps: 1e-7, ...extra };
    const { trace } = await runOptimizer(Optimizer, { start: [2], gradients: [[0], [0], [0]], options });
    expect(trace[2]).toAgreeWith([semanticsGolden(id).expected.var1 as number], { absolute: 1e-6, relative: 0 });
  });
});

describe("optax in float64", () => {
  const asOptax = (id: string, options: object) => ({
    ...goldenRun(`optax0.2.8_run_${id}`),
    options: { lr: 0.01, ...options },
    dtype: "f64" as const,
  });

  it.each<[string, OptimizerClass, object]>([
    ["adam lr=.01", Adam, {}],
    ["adamw wd=.1", AdamW, { weightDecay: 0.1 }],
  ])("%s", (id, Optimizer, options) =>
    expectGoldenTrace(`optax0.2.8_run_${id}`, Optimizer, asOptax(id, options), { absolute: 1e-14, relative: 1e-14 }),
  );

  it("MultiSteps is a step on the mean of two gradients", async () => {
    const { trace: expected, gradients, ...run } = asOptax("MultiSteps(adam,2)", {});
    const means = [0, 2].map((i) => gradients[i]!.map((x, j) => (x + gradients[i + 1]![j]!) / 2));
    const { trace } = await runOptimizer(Adam, { ...run, gradients: means });
    // optax's running mean is rounded otherwise: 3e-11 after the second step.
    expect(trace[0]).toAgreeWith(expected[1]!, { absolute: 1e-10, relative: 0 });
    expect(trace[1]).toAgreeWith(expected[3]!, { absolute: 1e-10, relative: 0 });
  });

  it("chain(clip_by_global_norm, adam) is clipGradNorm before each step, but for PyTorch's 1e-6 in the divisor", async () => {
    const { inputs, expected } = semanticsGolden("optax0.2.8_run_chain clip_global(0.5)+adam");
    const weight = parameter(inputs.x0 as number[], { dtype: "f64" });
    const optimizer = new Adam([weight], { lr: 0.01 });
    for (const [step, gradient] of (inputs.grads as number[][]).entries()) {
      weight.grad = tensor(gradient, { dtype: "f64" });
      clipGradNorm([weight], 0.5);
      optimizer.step();
      expect(await weight.data()).toAgreeWith((expected.trace as number[][])[step]!, { absolute: 1e-7, relative: 0 });
    }
  });

  it("apply_if_finite is a step without a gradient: nothing moves, no step is counted", async () => {
    const { inputs, expected } = semanticsGolden("optax0.2.8_run_apply_if_finite");
    const gradients = (inputs.grads as (number | "inf")[][]).map((gradient) =>
      gradient.includes("inf") ? null : (gradient as number[]),
    );
    const run = { start: inputs.x0 as number[], gradients, options: { lr: 0.01 }, dtype: "f64" } as const;
    const { trace, state } = await runOptimizer(Adam, run);
    (expected.trace as number[][]).forEach((x, step) => {
      expect(trace[step]).toAgreeWith(x, { absolute: 1e-14, relative: 1e-14 });
    });
    expect(state.get("step")).toBe(2);
  });

  it.each<[string, object]>([
    ["amsgrad b2=.9", { amsgrad: true, betas: [0.9, 0.9] }],
    ["adam eps_root", {}],
  ])("%s is another method: it must not agree", async (id, options) => {
    const { trace: expected, ...run } = asOptax(id, options);
    const { trace } = await runOptimizer(Adam, run);
    expect(trace.at(-1)).not.toAgreeWith(expected.at(-1)!, { absolute: 1e-5, relative: 0 });
  });
});
