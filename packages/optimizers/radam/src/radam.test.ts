import { parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { RAdam, type RAdamOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["eps below 0", { eps: -1 }],
  ["beta2 = 1", { betas: [0.9, 1] }],
  ["weightDecay below 0", { weightDecay: -1 }],
  ["a number for decoupledWeightDecay", { decoupledWeightDecay: 1 }],
  ["amsgrad, which RAdam has not", { amsgrad: true }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new RAdam([w], options as Partial<RAdamOptions>));
  expectCode("BAD_ARGUMENT", () => new RAdam([{ params: [w], ...options }]));
});

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new RAdam([parameter([1])]).groups[0]!;
  expect(options).toEqual({
    lr: 1e-3,
    betas: [0.9, 0.999],
    eps: 1e-8,
    weightDecay: 0,
    decoupledWeightDecay: false,
    maximize: false,
  });
});

it("steps by momentum alone until the average of squares is long enough, and always where it never is", () => {
  const stepsOf = (betas: [number, number]) => {
    const w = parameter([0], { dtype: "f64" });
    const optimizer = new RAdam([w], { betas, lr: 1, eps: 0 });
    return Array.from({ length: 8 }, () => {
      w.grad = tensor([100], { dtype: "f64" });
      const before = w.dataSync()[0]!;
      optimizer.step();
      return before - w.dataSync()[0]! > 50 ? "plain" : "adaptive";
    });
  };
  expect(stepsOf([0.9, 0.999]).indexOf("adaptive")).toBe(5);
  expect(new Set(stepsOf([0.9, 0.5]))).toEqual(new Set(["plain"]));
});
