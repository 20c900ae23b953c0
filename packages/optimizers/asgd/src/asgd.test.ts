import { parameter, type Tensor, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { ASGD } from "./index";

optimizerSuite(exported, {
  ASGD: {
    defaults: { lr: 1e-2, lambd: 1e-4, alpha: 0.75, t0: 1e6, weightDecay: 0, maximize: false },
    wrong: { lr: [-1], lambd: [-1], alpha: [Number.NaN], t0: [-1], weightDecay: [-1], lambda: [0.1] },
  },
});

it("has PyTorch's state", () => {
  const w = parameter([1]);
  const optimizer = new ASGD([w]);
  w.grad = tensor([1]);
  optimizer.step();
  const state = optimizer.stateDict().state["0"]!;
  expect(Object.keys(state)).toEqual(["step", "eta", "mu", "ax"]);
  expect(state.eta).toBe(Math.fround(0.01 / (1 + 1e-4 * 0.01) ** 0.75));
});

it("uses a new lr one step later, as PyTorch", () => {
  const w = parameter([0], { dtype: "f64" });
  const optimizer = new ASGD([w], { lr: 0.5, lambd: 0 });
  const moved = [];
  for (const lr of [0.5, 0.25, 0.25]) {
    optimizer.groups[0]!.lr = lr;
    const [before] = w.dataSync();
    w.grad = tensor([1], { dtype: "f64" });
    optimizer.step();
    moved.push(before! - w.dataSync()[0]!);
  }
  expect(moved).toEqual([0.5, 0.5, 0.25]);
});

it("averages after t0", () => {
  const w = parameter([0]);
  const optimizer = new ASGD([w], { lr: 1, lambd: 0, t0: 1 });
  const averages = [];
  for (let step = 0; step < 4; step++) {
    w.grad = tensor([-1]);
    optimizer.step();
    averages.push((optimizer.stateDict().state["0"]!.ax as Tensor).dataSync()[0]);
  }
  expect(averages).toEqual([1, 2, 3, 3.5]); // 3 and 4 after the last step, with weights 1/2
});
