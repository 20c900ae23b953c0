import { parameter, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { ADOPT } from "./index";

optimizerSuite(exported, {
  ADOPT: {
    defaults: { lr: 1e-3, betas: [0.9, 0.9999], eps: 1e-6, weightDecay: 0, clipping: true, maximize: false },
    wrong: { lr: [-1], betas: [[0.9, 1], [0.9]], eps: [-1], weightDecay: [-1], clipping: [1], amsgrad: [true] },
  },
});

it("only takes over the square in its first step, and limits the second to lr", () => {
  const w = parameter([1, 2]);
  const optimizer = new ADOPT([w], { lr: 0.5, betas: [0, 0.5] });
  w.grad = tensor([0.5, -2]);
  optimizer.step();
  expect(w.tolist()).toEqual([1, 2]);
  w.grad = tensor([0.25, -8]);
  optimizer.step();
  expect(w.tolist()).toEqual([0.75, 2.5]); // 0.25 / 0.5, and -8 / 2 limited to -1
});
