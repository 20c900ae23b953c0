import { compile, parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Shampoo } from "./index";

optimizerSuite(exported, {
  Shampoo: {
    defaults: {
      ...{ lr: 0.01, betas: [0.9, 1], eps: 1e-12, weightDecay: 0, momentum: 0, nesterov: false },
      ...{ grafting: { kind: "adam" }, blockSize: 1024, preconditionFrequency: 10, startStep: null, maximize: false },
    },
    wrong: {
      ...{ lr: [-1], betas: [[1, 1], [0.9, 0], [0.9]], eps: [0], weightDecay: [-1], momentum: [1], nesterov: [1] },
      grafting: [
        { kind: "lion" },
        { kind: "adam", beta2: 1 },
        { kind: "adam", eps: -1 },
        { kind: "adam", beta1: 0 },
        null,
      ],
      ...{ blockSize: [0], preconditionFrequency: [0, 1.5], startStep: [0, "1"] },
    },
  },
});

it("stores its state in float32", () => {
  expectCode("UNSUPPORTED", () => new Shampoo([parameter([[1]])], { stateDType: "bf16" }));
});

const gradientAt = (t: number) => tensor([0, 1, 2, 3, 4, 5].map((i) => Math.sin(t * (i + 1)))).reshape([2, 3]);
const START = [
  [1, -2, 3],
  [0.5, 4, -1],
];
const OPTIONS = { lr: 0.1, betas: [0.9, 0.5], momentum: 0.5, blockSize: 2, preconditionFrequency: 3 } as const;
const made = (options = {}) => {
  const w = parameter(START);
  return { w, optimizer: new Shampoo([w], { ...OPTIONS, ...options }) };
};

it("compiled has the words of eager, over new inverse roots", () => {
  const [eager, compiled] = [made(), made()];
  const step = compile(() => compiled.optimizer.step());
  for (let t = 1; t <= 14; t++) {
    for (const { w } of [eager, compiled]) w.grad = gradientAt(t);
    eager.optimizer.step();
    step();
    expect(compiled.w.tolist()).toEqual(eager.w.tolist());
  }
});

it("two steps in one compiled function compute inverse roots when their turn comes", () => {
  const [eager, inside] = [made(), made()];
  const both = compile(() => {
    inside.optimizer.step();
    inside.optimizer.step();
  });
  for (let t = 1; t <= 12; t++) {
    for (const { w } of [eager, inside]) w.grad = gradientAt(t);
    eager.optimizer.step();
    eager.optimizer.step();
    both();
    expect(inside.w.tolist()).toEqual(eager.w.tolist());
  }
});

it("goes on after a save, between two computations of inverse roots", () => {
  const { w, optimizer } = made();
  const step = (t: number) => {
    w.grad = gradientAt(t);
    optimizer.step();
  };
  for (let t = 1; t <= 4; t++) step(t);
  const again = parameter(w.clone());
  const other = new Shampoo([again], OPTIONS);
  other.loadStateDict(optimizer.stateDict());
  for (let t = 5; t <= 9; t++) {
    step(t);
    again.grad = gradientAt(t);
    other.step();
  }
  expect(again.tolist()).toEqual(w.tolist());
});

it("steps as the grafted method before startStep, and by its own direction from there on", () => {
  const [early, late] = [made({ momentum: 0, startStep: 3 }), made({ momentum: 0, startStep: 4 })];
  for (let t = 1; t <= 3; t++) {
    const before = early.w.tolist();
    expect(late.w.tolist()).toEqual(before);
    for (const { w, optimizer } of [early, late]) {
      w.grad = gradientAt(t);
      optimizer.step();
    }
  }
  expect(late.w.tolist()).not.toEqual(early.w.tolist());
});

it("gives each block its own preconditioners", () => {
  const { w, optimizer } = made();
  w.grad = gradientAt(1);
  optimizer.step();
  const state = optimizer.stateDict().state["0"]!;
  const shapes = Object.entries(state).flatMap(([key, x]) =>
    key.startsWith("factor") && typeof x !== "number" ? [[key, x.shape]] : [],
  );
  expect(Object.fromEntries(shapes)).toEqual({
    ...{ factor_0_0: [2, 2], factor_0_1: [2, 2], factor_1_0: [2, 2], factor_1_1: [1, 1] },
  });
});

it("takes a gradient that is not finite without an error", () => {
  const { w, optimizer } = made({ startStep: 1 });
  w.grad = tensor([Number.NaN, 1, 2, 3, Number.POSITIVE_INFINITY, 5]).reshape([2, 3]);
  optimizer.step();
  expect([...w.dataSync()].some(Number.isNaN)).toBe(true);
});
