import { parameter, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Adan } from "./index";

optimizerSuite(exported, {
  Adan: {
    defaults: { lr: 1e-3, betas: [0.98, 0.92, 0.99], eps: 1e-8, weightDecay: 0, maximize: false },
    wrong: {
      lr: [-1],
      betas: [
        [0.9, 0.9, 1],
        [0.9, 0.9],
      ],
      eps: [-1],
      weightDecay: [-1],
      amsgrad: [true],
    },
  },
});

it("sees no change of the gradient in its first step", () => {
  const w = parameter([1, 2]);
  const optimizer = new Adan([w], { lr: 0.5, betas: [0, 0, 0], eps: 0 });
  w.grad = tensor([0.5, -2]);
  optimizer.step();
  expect(w.tolist()).toEqual([0.5, 2.5]); // the sign of the gradient
  expect((optimizer.stateDict().state[0]!.exp_avg_diff as typeof w).tolist()).toEqual([0, 0]);
});
