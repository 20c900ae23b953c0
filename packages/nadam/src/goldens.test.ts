// NAdam against PyTorch 2.13, Keras' published tables and the trace of the method's four first steps.
import { goldenSuite, kerasTable, optionsFrom, runOptimizer, semanticsGolden } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { NAdam } from "./nadam";

goldenSuite({ name: "js", optimizers: { NAdam } });

describe("four steps of one element", () => {
  /** The state after each step of a golden, from a run of ours. */
  async function runTrace(id: string, dtype: "f32" | "f64") {
    const { config, inputs, expected } = semanticsGolden(id);
    const ours = [];
    for (let steps = 1; steps <= 4; steps++) {
      const gradients = new Array(steps).fill([inputs.grad]);
      const run = { start: [Number(inputs.x0)], gradients, options: optionsFrom(config), dtype };
      const { trace, state } = await runOptimizer(NAdam, run);
      ours.push({ param: trace.at(-1)![0]!, state });
    }
    return { ours, expected: expected.trace as Record<string, number>[] };
  }

  it.each(["f32", "f64"] as const)("as PyTorch computes them in %s", async (dtype) => {
    const { ours, expected } = await runTrace(
      `seed_nadam_trace_torch_${dtype === "f32" ? "float32" : "float64"}`,
      dtype,
    );
    const tolerance = dtype === "f32" ? "bits" : { absolute: 0, relative: 1e-14 };
    expected.forEach((step, i) => {
      expect(ours[i]!.param).toAgreeWith(step.param!, tolerance);
      expect(ours[i]!.state.get("exp_avg")).toAgreeWith([step.exp_avg!], tolerance);
      expect(ours[i]!.state.get("exp_avg_sq")).toAgreeWith([step.exp_avg_sq!], tolerance);
      expect(ours[i]!.state.get("mu_product")).toAgreeWith(step.mu_product_f32!);
    });
  });

  it("as printed with six digits by a plain C++ loop", async () => {
    const { ours, expected } = await runTrace("seed_nadam_trace_printed", "f32");
    const printed = { absolute: 0, relative: 5e-6 };
    expected.forEach((step, i) => {
      expect(ours[i]!.param).toAgreeWith(step.param!, printed);
      expect(ours[i]!.state.get("exp_avg")).toAgreeWith([step.m_t!], printed);
      expect(ours[i]!.state.get("mu_product")).toAgreeWith(step.mu_product_t!, printed);
      // Its 1 - beta2 was taken from a float32 beta2, 1.3e-5 off.
      expect(ours[i]!.state.get("exp_avg_sq")).toAgreeWith([step.v_t!], { absolute: 0, relative: 2e-5 });
    });
  });
});

describe("Keras' Nadam is NAdam with momentumDecay 1", () => {
  it("in the published table", async () => {
    const run = kerasTable("keras_nadam_golden", "NAdam", { momentumDecay: 1 });
    const { trace } = await runOptimizer(NAdam, run);
    run.trace.forEach((expected, step) => {
      expect(trace[step]).toAgreeWith(expected, { absolute: 5e-4, relative: 5e-4 });
    });
  });

  it.each([
    ["nadam_golden", kerasTable("keras_nadam_golden", "NAdam", { momentumDecay: 1 }).options],
    ["nadam_single", { lr: 0.5, eps: 1e-7, momentumDecay: 1 }],
  ])("in a run of Keras 3.15, %s", async (id, options) => {
    const { inputs, expected } = semanticsGolden(`keras3.15.1_run_${id}`);
    const run = { start: inputs.x0 as number[], gradients: inputs.grads as number[][], options };
    const { trace } = await runOptimizer(NAdam, run);
    (expected.trace as number[][]).forEach((x, step) => {
      expect(trace[step]).toAgreeWith(x, { absolute: 2e-6, relative: 0 });
    });
  });

  it("in a single step", async () => {
    const { inputs, expected } = semanticsGolden("keras_nadam_single_step");
    const options = { lr: 0.5, eps: 1e-7, momentumDecay: 1 };
    const { trace } = await runOptimizer(NAdam, {
      start: inputs.x0 as number[],
      gradients: inputs.grads as number[][],
      options,
    });
    expect(trace[0]).toAgreeWith(expected.x as number[], { absolute: 1e-4, relative: 1e-4 });
  });

  it("with decoupled weight decay, three times over", async () => {
    const options = { lr: 1, weightDecay: 0.004, eps: 1e-7, momentumDecay: 1, decoupledWeightDecay: true };
    const { trace } = await runOptimizer(NAdam, { start: [2], gradients: [[0], [0], [0]], options });
    expect(trace[2]).toAgreeWith([semanticsGolden("keras_nadam_weight_decay").expected.var1 as number], {
      absolute: 1e-6,
      relative: 0,
    });
  });
});
