import { parameter, type Tensor, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Rprop, type RpropOptions } from "./index";

optimizerSuite(exported);

it.each<[string, object]>([
  ["lr below 0", { lr: -1 }],
  ["a factor of 0", { etas: [0, 1.2] }],
  ["a first factor of 1", { etas: [1, 1.2] }],
  ["a second factor of 1", { etas: [0.5, 1] }],
  ["one factor", { etas: [0.5] }],
  ["a number for etas", { etas: 0.5 }],
  ["a step size below 0", { stepSizes: [-1, 1] }],
  ["step sizes in the wrong order", { stepSizes: [1, 0.5] }],
  ["weightDecay, which it lacks", { weightDecay: 0.1 }],
])("rejects %s, for all and for a group", (_, options) => {
  const w = parameter([1]);
  expectCode("BAD_ARGUMENT", () => new Rprop([w], options as Partial<RpropOptions>));
  expectCode("BAD_ARGUMENT", () => new Rprop([{ params: [w], ...options }]));
});

it("has PyTorch's defaults", () => {
  const { params, names, ...options } = new Rprop([parameter([1])]).groups[0]!;
  expect(options).toEqual({ lr: 1e-2, etas: [0.5, 1.2], stepSizes: [1e-6, 50], maximize: false });
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
