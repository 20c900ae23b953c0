import { parameter, type Tensor, tensor } from "@opt/core";
import { StepLR } from "@opt/core/schedules";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { NAdam } from "./nadam";
import type { NAdamOptions } from "./options";

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

it("steps parameters apart whose counts are equal and whose mu_products are not", () => {
  const params = [parameter([1]), parameter([1])];
  const optimizer = new NAdam(params);
  const step = () => {
    for (const param of params) param.grad = tensor([1]);
    optimizer.step();
  };
  step();
  const { groups, state } = optimizer.stateDict();
  optimizer.loadStateDict({ groups, state: { ...state, "1": { ...state["1"]!, mu_product: 0.25 } } });
  step();
  const [a, b] = params.map((param) => param.dataSync()[0]!);
  expect(a).not.toBe(b);
  const products = Object.values(optimizer.stateDict().state).map(({ mu_product }) => mu_product as number);
  expect(products[1]! / products[0]!).toBeCloseTo(0.25 / (state["0"]!.mu_product as number), 6);
});
