import { parameter, tensor } from "@opt/core";
import {
  expectCode,
  expectGoldenTrace,
  kerasTable,
  optimizerSuite,
  optionsFrom,
  runOptimizer,
  semanticsGolden,
} from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { NAdam } from "./index";

optimizerSuite(exported, {
  NAdam: {
    defaults: {
      lr: 2e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0,
      momentumDecay: 4e-3,
      decoupledWeightDecay: false,
      maximize: false,
    },
    wrong: {
      lr: [-1, Number.NaN],
      eps: [-1e-8],
      weightDecay: [-0.1],
      momentumDecay: [-0.2],
      betas: [[1, 0.999], [0.9, -0.1], [Number.NaN, 0.999], [0.9], 0.9],
      maximize: [1],
      amsgrad: [true],
    },
  },
});

describe("mu_product", () => {
  const train = (dtype: "f32" | "f64" | "bf16") => {
    const w = parameter([1, 2], { dtype });
    const optimizer = new NAdam([w], { lr: 0.1 });
    const step = () => {
      w.grad = tensor([0.5, -1], { dtype });
      optimizer.step();
    };
    for (let i = 0; i < 3; i++) step();
    return { w, optimizer, step };
  };

  it("that was loaded in float64 is float32 from the next step on", () => {
    const [exact, rounded] = [train("f64"), train("f64")];
    const { groups, state } = exact.optimizer.stateDict();
    const load = ({ optimizer, step }: ReturnType<typeof train>, mu_product: number) => {
      optimizer.loadStateDict({ groups, state: { "0": { ...state["0"]!, mu_product } } });
      step();
      return optimizer.stateDict().state["0"]!.mu_product;
    };
    const expected = load(rounded, Math.fround(0.1));
    expect(load(exact, 0.1)).toBe(expected);
  });

  it("is needed: a state without it, or with NaN, is another optimizer's", () => {
    for (const value of [undefined, Number.NaN, "1"]) {
      const { optimizer } = train("f32");
      const { groups, state } = optimizer.stateDict();
      const damaged = { groups, state: { "0": { ...state["0"]!, mu_product: value as number } } };
      expectCode("BAD_STATE", () => optimizer.loadStateDict(damaged));
      expect(optimizer.stateDict().state["0"]!.mu_product).toBe(state["0"]!.mu_product);
    }
  });
});

it.each([
  [-0.1303, 0.0446, -0.01027500256896019],
  [3.4558, 33.0437, 17.385799407958984],
])("beta1 = 0.5 interpolates from PyTorch's other end: %d, then %d", (one, two, expected) => {
  const w = parameter([0]);
  const optimizer = new NAdam([w], { betas: [0.5, 0.999] });
  for (const gradient of [one, two]) {
    w.grad = tensor([gradient]);
    optimizer.step();
  }
  expect(Number(optimizer.stateDict().state["0"]!.exp_avg)).toBe(expected); // the other form is 1 ulp off
});

it("keeps betas and mu_products of its groups and saved states apart", () => {
  const params = [parameter([1]), parameter([1])];
  const betas: [number, number] = [0.9, 0.999];
  const optimizer = new NAdam([{ params: params[0]! }, { params: params[1]!, betas: [0.8, 0.999] }], { betas });
  const other = new NAdam([parameter([1])], { betas });
  const lists = [betas, ...optimizer.groups.map((group) => group.betas), other.groups[0]!.betas];
  const saved = optimizer.stateDict();
  lists.push(...saved.groups.map((group) => group.betas as [number, number]));
  optimizer.loadStateDict(saved);
  lists.push(...optimizer.groups.map((group) => group.betas));
  expect(new Set(lists).size).toBe(lists.length);
});

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

  const run = { absolute: 2e-6, relative: 0 };
  it.each([
    ["keras3.15.1_run_nadam_golden", kerasTable("keras_nadam_golden", "NAdam").options, run],
    ["keras3.15.1_run_nadam_single", { lr: 0.5, eps: 1e-7 }, run],
    ["keras_nadam_single_step", { lr: 0.5, eps: 1e-7 }, { absolute: 1e-4, relative: 1e-4 }],
  ] as const)("%s", (id, options, tolerance) =>
    expectGoldenTrace(id, NAdam, { options: { ...options, momentumDecay: 1 } }, tolerance),
  );

  it("with decoupled weight decay, three times over", async () => {
    const options = { lr: 1, weightDecay: 0.004, eps: 1e-7, momentumDecay: 1, decoupledWeightDecay: true };
    const { trace } = await runOptimizer(NAdam, { start: [2], gradients: [[0], [0], [0]], options });
    expect(trace[2]).toAgreeWith([semanticsGolden("keras_nadam_weight_decay").expected.var1 as number], {
      absolute: 1e-6,
      relative: 0,
    });
  });
});
