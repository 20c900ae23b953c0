import { parameter, type Tensor, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adamax, type AdamaxOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["eps below 0", { eps: -1 }],
  ["beta1 = 1", { betas: [1, 0.9] }],
  ["weightDecay below 0", { weightDecay: -1 }],
  ["amsgrad, which Adamax has not", { amsgrad: true }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new Adamax([w], options as Partial<AdamaxOptions>));
  expectCode("BAD_ARGUMENT", () => new Adamax([{ params: [w], ...options }]));
});

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new Adamax([parameter([1])]).groups[0]!;
  expect(options).toEqual({ lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false });
});

it("stays NaN once a gradient was, in every word of its state", () => {
  const w = parameter([1, 2]);
  const optimizer = new Adamax([w]);
  for (const gradient of [Number.NaN, 1]) {
    w.grad = tensor([gradient, 1]);
    optimizer.step();
  }
  for (const key of ["exp_avg", "exp_inf"]) {
    expect(Number.isNaN((optimizer.stateDict().state["0"]![key] as Tensor).dataSync()[0])).toBe(true);
  }
});
