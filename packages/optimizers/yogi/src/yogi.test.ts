import { parameter, type Tensor, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Yogi } from "./index";

optimizerSuite(exported, {
  Yogi: {
    defaults: { lr: 1e-2, betas: [0.9, 0.999], eps: 1e-3, maximize: false },
    wrong: { lr: [-1], betas: [[0.9, 1], [0.9]], eps: [-1], weightDecay: [0.1] },
  },
});

it("lets the average of squares fall by at most (1 - beta2) grad^2, where Adam's is decimated", () => {
  const w = parameter([0]);
  const optimizer = new Yogi([w], { betas: [0, 0] });
  const square = () => (optimizer.stateDict().state[0]!.exp_avg_sq as Tensor).dataSync();
  for (const [gradient, expected] of [
    [4, 16],
    [1, 15],
    [4, 31],
  ] as const) {
    w.grad = tensor([gradient]);
    optimizer.step();
    expect(square()).toAgreeWith([expected], { absolute: 1e-5, relative: 0 });
  }
});
