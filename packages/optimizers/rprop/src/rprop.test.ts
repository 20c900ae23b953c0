import { parameter, type Tensor, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Rprop } from "./index";

optimizerSuite(exported, {
  Rprop: {
    defaults: { lr: 1e-2, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false },
    wrong: {
      lr: [-1],
      etas: [[0, 1.2], [1, 1.2], [0.5, 1], [0.5], 0.5],
      stepSizes: [
        [-1, 1],
        [1, 0.5],
      ],
      weightDecay: [0.1],
    },
  },
});

it("grows, shrinks and keeps step sizes, and rests where a gradient turns or is NaN", () => {
  const w = parameter([0, 0, 0, 0]);
  const optimizer = new Rprop([w], { lr: 1, etas: [0.5, 2] });
  for (const gradient of [
    [1, 1, 1, 1],
    [1, -1, 0, Number.NaN],
    [1, -1, 1, 1],
  ]) {
    w.grad = tensor(gradient);
    optimizer.step();
  }
  expect([...w.dataSync()]).toEqual([-1 - 2 - 4, -1 + 0.5, -1 - 1, -1 - 1]);
  const { step_size, prev } = optimizer.stateDict().state["0"]!;
  expect([...(step_size as Tensor).dataSync()]).toEqual([4, 0.5, 1, 1]);
  expect([...(prev as Tensor).dataSync()]).toEqual([1, -1, 1, 1]);
});
