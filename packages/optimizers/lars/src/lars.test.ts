import { compile, parameter, tensor } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { LARS } from "./index";

optimizerSuite(exported, {
  LARS: {
    defaults: {
      ...{ lr: 1e-3, weightDecay: 0, trustCoefficient: 1e-3, eps: 0 },
      ...{ momentum: 0.9, nesterov: false, maximize: false },
    },
    wrong: { lr: [-1], weightDecay: [-1], trustCoefficient: [-1], eps: [-1], momentum: [-1], nesterov: [1] },
  },
});

it("steps by lr * trustCoefficient of each parameter's own norm", () => {
  const params = [parameter([3, 4]), parameter([6, 8])];
  for (const param of params) param.grad = tensor([0, 2]);
  new LARS(params, { lr: 0.5, trustCoefficient: 0.5 }).step();
  expect(params.map((param) => param.tolist())).toEqual([
    [3, 2.75],
    [6, 5.5],
  ]);
});

it("steps a parameter of zeros by lr, and leaves one alone whose gradient is 0", () => {
  const [zero, still] = [parameter([0, 0]), parameter([1, 2])];
  zero.grad = tensor([2, -4]);
  still.grad = tensor([0, 0]);
  new LARS([zero, still], { lr: 0.5 }).step();
  expect([zero.tolist(), still.tolist()]).toEqual([
    [-1, 2],
    [1, 2],
  ]);
});

it("has the same words compiled", () => {
  const [one, other] = [parameter([1, -2, 3]), parameter([1, -2, 3])];
  const optimizers = [one, other].map((w) => new LARS([w], { lr: 0.1, weightDecay: 0.1, trustCoefficient: 0.1 }));
  const compiled = compile(() => optimizers[1]!.step());
  for (let t = 1; t <= 5; t++) {
    for (const w of [one, other]) w.grad = tensor([t, -1, 0.5]);
    optimizers[0]!.step();
    compiled();
  }
  expect(other.tolist()).toEqual(one.tolist());
});
