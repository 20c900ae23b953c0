// Adam and AdamW against PyTorch 2.13, and against Keras and optax where these compute the same.
import { clipGradNorm, parameter, tensor } from "@opt/core";
import { goldenSuite, kerasTable, type OptimizerClass, runOptimizer, semanticsGolden } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Adam, AdamW } from "./adam";

goldenSuite({ name: "js", optimizers: { Adam, AdamW } });

describe("Keras, whose eps is added to the uncorrected square root", () => {
  // With eps 1e-7 that is far below the tables' own tolerance; the AdamW table has eps 2, which no option of ours expresses.
  it("Adam with AMSGrad in the published table", async () => {
    const run = kerasTable("keras_adam_amsgrad_golden", "Adam");
    const { trace } = await runOptimizer(Adam, run);
    run.trace.forEach((expected, step) => {
      expect(trace[step]).toAgreeWith(expected, { absolute: 5e-4, relative: 5e-4 });
    });
  });

  it.each<[string, OptimizerClass, object]>([
    ["keras_adam_single_step", Adam, {}],
    ["keras_adamw_single_step", AdamW, { weightDecay: 0.004 }],
  ])("%s", async (id, Optimizer, extra) => {
    const { inputs, expected } = semanticsGolden(id);
    const options = { lr: 0.5, eps: 1e-7, ...extra };
    const { trace } = await runOptimizer(Optimizer, {
      start: inputs.x0 as number[],
      gradients: inputs.grads as number[][],
      options,
    });
    expect(trace[0]).toAgreeWith(expected.x as number[], { absolute: 1e-4, relative: 1e-4 });
  });

  it.each<[string, OptimizerClass, object]>([
    ["adam_amsgrad_golden", Adam, { amsgrad: true }],
    ["adam_single", Adam, { lr: 0.5 }],
    ["adamw_single", AdamW, { lr: 0.5, weightDecay: 0.004 }],
  ])("a run of Keras 3.15, %s", async (id, Optimizer, extra) => {
    const { inputs, expected } = semanticsGolden(`keras3.15.1_run_${id}`);
    const run = {
      start: inputs.x0 as number[],
      gradients: inputs.grads as number[][],
      options: { eps: 1e-7, ...extra },
    };
    const { trace } = await runOptimizer(Optimizer, run);
    (expected.trace as number[][]).forEach((x, step) => {
      // The eps of the first step is 30 times as large in Keras: 3e-6 of lr 0.5 for a gradient of 1.
      expect(trace[step]).toAgreeWith(x, { absolute: 6e-6, relative: 0 });
    });
  });

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
  async function runAsOptax(
    id: string,
    Optimizer: OptimizerClass,
    options: object,
    change = (gradients: number[][]) => gradients,
  ) {
    const { inputs, expected } = semanticsGolden(`optax0.2.8_run_${id}`);
    const gradients = change(inputs.grads as number[][]);
    const run = { start: inputs.x0 as number[], gradients, options: { lr: 0.01, ...options }, dtype: "f64" } as const;
    return { trace: (await runOptimizer(Optimizer, run)).trace, expected: expected.trace as number[][] };
  }

  it.each<[string, OptimizerClass, object]>([
    ["adam lr=.01", Adam, {}],
    ["adamw wd=.1", AdamW, { weightDecay: 0.1 }],
  ])("%s", async (id, Optimizer, options) => {
    const { trace, expected } = await runAsOptax(id, Optimizer, options);
    expected.forEach((x, step) => {
      expect(trace[step]).toAgreeWith(x, { absolute: 1e-14, relative: 1e-14 });
    });
  });

  it("MultiSteps is a step on the mean of two gradients", async () => {
    const mean = (gradients: number[][]) =>
      [0, 2].map((i) => gradients[i]!.map((x, j) => (x + gradients[i + 1]![j]!) / 2));
    const { trace, expected } = await runAsOptax("MultiSteps(adam,2)", Adam, {}, mean);
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
    const { trace, expected } = await runAsOptax(id, Adam, options);
    expect(trace.at(-1)).not.toAgreeWith(expected.at(-1)!, { absolute: 1e-5, relative: 0 });
  });
});
