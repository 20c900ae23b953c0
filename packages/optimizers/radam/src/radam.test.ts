import { parameter, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { RAdam } from "./index";

optimizerSuite(exported, {
  RAdam: {
    defaults: {
      lr: 1e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0,
      decoupledWeightDecay: false,
      maximize: false,
    },
    wrong: {
      lr: [-1],
      eps: [-1],
      betas: [[0.9, 1]],
      weightDecay: [-1],
      decoupledWeightDecay: [1],
      amsgrad: [true],
    },
  },
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
