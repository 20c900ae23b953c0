import { parameter, type Tensor, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adamax } from "./index";

optimizerSuite(exported, {
  Adamax: {
    defaults: { lr: 2e-3, betas: [0.9, 0.999], eps: 1e-8, weightDecay: 0, maximize: false },
    wrong: { lr: [-1], eps: [-1], betas: [[1, 0.9]], weightDecay: [-1], amsgrad: [true] },
  },
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
