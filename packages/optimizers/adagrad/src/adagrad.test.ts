import { enableQ8, parameter, rowSparse, type Tensor, tensor, viewAsComplex, viewAsReal } from "@opt/core";
import { optimizerSuite } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { Adagrad } from "./index";

optimizerSuite(exported, {
  Adagrad: {
    defaults: { lr: 1e-2, lrDecay: 0, weightDecay: 0, initialAccumulatorValue: 0, eps: 1e-10, maximize: false },
    wrong: {
      lr: [-1],
      lrDecay: [-0.1],
      eps: [Number.NaN],
      weightDecay: [-1],
      initialAccumulatorValue: [-1],
      momentum: [0.9],
    },
  },
});

describe("the sum starts at initialAccumulatorValue", () => {
  const sumOf = (optimizer: Adagrad) => optimizer.stateDict().state["0"]!.sum as Tensor;

  it("of each group", () => {
    const [a, b] = [parameter([1]), parameter([1])];
    const optimizer = new Adagrad([{ params: [a], initialAccumulatorValue: 4 }, { params: [b] }]);
    for (const w of [a, b]) w.grad = tensor([0.5]);
    optimizer.step();
    expect([...sumOf(optimizer).dataSync()]).toEqual([4.25]);
    expect([...(optimizer.stateDict().state["1"]!.sum as Tensor).dataSync()]).toEqual([0.25]);
  });

  it("in rows that lazyMode has not stepped yet", () => {
    const w = parameter([1, 1], { shape: [2, 1] });
    const optimizer = new Adagrad([w], { initialAccumulatorValue: 2, lazyMode: true });
    for (const row of [0, 1]) {
      w.grad = rowSparse(tensor([row], { dtype: "i32" }), tensor([1], { shape: [1, 1] }), [2, 1]);
      optimizer.step();
    }
    expect([...sumOf(optimizer).dataSync()]).toEqual([3, 3]);
  });

  it("is not added again to a sum that was loaded before the first step", () => {
    const w = parameter([1]);
    const optimizer = new Adagrad([w], { initialAccumulatorValue: 2 });
    const groups = [{ ...optimizer.stateDict().groups[0]!, params: ["0"] }];
    optimizer.loadStateDict({ groups, state: { "0": { step: 0, sum: tensor([7]) } } });
    w.grad = tensor([1]);
    optimizer.step();
    expect([...sumOf(optimizer).dataSync()]).toEqual([8]);
  });

  it.each([
    ["bf16", "f32"],
    ["f64", "f32"],
    ["f32", "bf16"],
    ["f32", "q8"],
  ] as const)("of a %s parameter, stored as %s", (dtype, stateDType) => {
    enableQ8();
    const size = 4096;
    const w = parameter(new Float32Array(size).fill(1)).to(dtype).detach();
    w.requiresGrad = true;
    const optimizer = new Adagrad([w], { initialAccumulatorValue: 2, stateDType });
    w.grad = w.mul(0).detach();
    optimizer.step();
    expect(new Set(sumOf(optimizer).dataSync())).toEqual(new Set([2]));
  });

  it("of both parts of a complex parameter", () => {
    const w = viewAsComplex(tensor([1, 2, 3, 4], { shape: [2, 2] }));
    w.requiresGrad = true;
    const optimizer = new Adagrad([w], { initialAccumulatorValue: 2 });
    w.grad = viewAsComplex(tensor([0, 1, 2, 3], { shape: [2, 2] }));
    optimizer.step();
    expect([...viewAsReal(sumOf(optimizer)).dataSync()]).toEqual([2, 3, 6, 11]);
  });
});
