import { parameter, type Tensor, tensor } from "@opt/core";
import { StepLR } from "@opt/core/schedules";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { NAdam, type NAdamOptions } from "./nadam";

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["lr NaN", { lr: Number.NaN }],
  ["eps below 0", { eps: -1e-8 }],
  ["weightDecay below 0", { weightDecay: -0.1 }],
  ["momentumDecay below 0", { momentumDecay: -0.2 }],
  ["beta1 = 1", { betas: [1, 0.999] }],
  ["beta2 below 0", { betas: [0.9, -0.1] }],
  ["beta NaN", { betas: [Number.NaN, 0.999] }],
  ["one beta", { betas: [0.9] }],
  ["a number for betas", { betas: 0.9 }],
  ["a number for maximize", { maximize: 1 }],
  ["amsgrad, which NAdam has not", { amsgrad: true }],
])("refuses %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new NAdam([w], options as Partial<NAdamOptions>));
  expectCode("BAD_ARGUMENT", () => new NAdam([{ params: [w], ...options }]));
});

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new NAdam([parameter([1])]).groups[0]!;
  expect([params.length, names]).toEqual([1, ["0"]]);
  expect(options).toEqual({
    lr: 2e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    momentumDecay: 4e-3,
    decoupledWeightDecay: false,
    maximize: false,
  });
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

  it.each(["f32", "f64", "bf16"] as const)("stays in float32 for %s parameters, through a load too", (dtype) => {
    const [straight, saved, loaded] = [train(dtype), train(dtype), train(dtype)];
    const product = saved.optimizer.stateDict().state["0"]!.mu_product as number;
    expect(Math.fround(product)).toBe(product);
    loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
    for (const { step } of [straight, loaded]) step();
    expect(loaded.w.dataSync()).toAgreeWith(straight.w.dataSync());
    expect(loaded.optimizer.stateDict().state["0"]!.mu_product).toBe(
      straight.optimizer.stateDict().state["0"]!.mu_product,
    );
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

it("trains under a schedule, and a gradient's scale does not matter", () => {
  const losses = [1, 1000].map((scale) => {
    const w = parameter([3, -2], { dtype: "f64" });
    const optimizer = new NAdam([w], { lr: 0.1, eps: 0 });
    const schedule = new StepLR(optimizer, { stepSize: 40, gamma: 0.5 });
    let loss: Tensor | undefined;
    for (let epoch = 0; epoch < 120; epoch++) {
      optimizer.zeroGrad();
      loss = w.mul(w).sum();
      loss.mul(scale).backward();
      optimizer.step();
      schedule.step();
    }
    expect(optimizer.groups[0]!.lr).toBe(0.0125);
    return Number(loss);
  });
  expect(losses[0]).toBeLessThan(1e-3);
  expect(losses[1]).toAgreeWith(losses[0]!, { absolute: 0, relative: 1e-6 });
});
