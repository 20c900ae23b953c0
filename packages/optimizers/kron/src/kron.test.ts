import { compile, parameter, tensor } from "@opt/core";
import { expectCode, optimizerSuite } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Kron } from "./index";

optimizerSuite(exported, {
  Kron: {
    defaults: {
      ...{ lr: 1e-3, momentum: 0.9, weightDecay: 0, preconditionerLr: 0.1, updateProbability: null },
      ...{ maxSizeTriangular: 8192, memorySaveMode: null, seed: 0, maximize: false },
    },
    wrong: {
      ...{ lr: [-1], momentum: [1, "0.9"], weightDecay: [-1], preconditionerLr: [-1], updateProbability: [0, 1.5] },
      ...{ maxSizeTriangular: [0.5], memorySaveMode: ["one_diag"], seed: [-1, 0.5] },
    },
  },
});

it("stores its state in float32", () => {
  expectCode("UNSUPPORTED", () => new Kron([parameter([[1]])], { stateDType: "bf16" }));
});

const gradientAt = (t: number) => tensor([0, 1, 2, 3, 4, 5].map((i) => Math.sin(t * (i + 1)))).reshape([2, 3]);
const START = [
  [1, -2, 3],
  [0.5, 4, -1],
];
const made = (options = {}) => {
  const w = parameter(START);
  return { w, optimizer: new Kron([w], { lr: 0.1, updateProbability: 0.4, ...options }) };
};

it("compiled has the words of eager, over updates of the factors", () => {
  const [eager, compiled] = [made(), made()];
  const step = compile(() => compiled.optimizer.step());
  for (let t = 1; t <= 14; t++) {
    for (const { w } of [eager, compiled]) w.grad = gradientAt(t);
    eager.optimizer.step();
    step();
    expect(compiled.w.tolist()).toEqual(eager.w.tolist());
  }
});

it.each([0.4, 1])("two steps in one compiled function draw the noise of their step, %d", (updateProbability) => {
  const [eager, inside] = [made({ updateProbability }), made({ updateProbability })];
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

it("goes on after a save, between two updates", () => {
  const { w, optimizer } = made();
  const step = (t: number) => {
    w.grad = gradientAt(t);
    optimizer.step();
  };
  for (let t = 1; t <= 4; t++) step(t);
  const again = parameter(w.clone());
  const other = new Kron([again], { lr: 0.1, updateProbability: 0.4 });
  other.loadStateDict(optimizer.stateDict());
  for (let t = 5; t <= 9; t++) {
    step(t);
    again.grad = gradientAt(t);
    other.step();
  }
  expect(again.tolist()).toEqual(w.tolist());
});

it("updates its factors in each of the first steps, then as rarely as the schedule says", () => {
  const w = parameter([1]);
  const optimizer = new Kron([w]);
  w.grad = tensor([1]);
  const steps: number[] = [];
  for (let t = 1, before = Number.NaN; t <= 1000; t++) {
    optimizer.step();
    const { updates } = optimizer.stateDict().state["0"] as unknown as { updates: number };
    if (updates !== before) steps.push(t);
    before = updates;
  }
  const expected: number[] = [];
  for (let t = 1, since = 0; t <= 1000; t++) {
    since++;
    if (since * Math.min(1, Math.exp(-0.001 * (t - 1 - 500))) < 1) continue;
    expected.push(t);
    since = 0;
  }
  expect(steps).toEqual(expected);
  expect(steps.length).toBeLessThan(900);
});

it("has triangular factors up to maxSizeTriangular, and diagonals where memorySaveMode says", () => {
  const shapesOf = (options: object) => {
    const { w, optimizer } = made(options);
    w.grad = gradientAt(1);
    optimizer.step();
    const state = optimizer.stateDict().state["0"]!;
    return ["factor_0", "factor_1"].map((key) => (state[key] as { shape: readonly number[] }).shape);
  };
  expect(shapesOf({})).toEqual([
    [2, 2],
    [3, 3],
  ]);
  expect(shapesOf({ maxSizeTriangular: 2 })).toEqual([[2, 2], [3]]);
  expect(shapesOf({ memorySaveMode: "oneDiagonal" })).toEqual([[2, 2], [3]]);
  expect(shapesOf({ memorySaveMode: "allDiagonal" })).toEqual([[2], [3]]);
});

it("draws other noise from another seed", () => {
  const words = [0, 1].map((seed) => {
    const { w, optimizer } = made({ seed, updateProbability: 1 });
    w.grad = gradientAt(1);
    optimizer.step();
    return w.tolist();
  });
  expect(words[0]).not.toEqual(words[1]);
});

it("takes a gradient that is not finite without an error", () => {
  const { w, optimizer } = made({ updateProbability: 1 });
  w.grad = tensor([Number.NaN, 1, 2, 3, Number.POSITIVE_INFINITY, 5]).reshape([2, 3]);
  optimizer.step();
  expect([...w.dataSync()].some(Number.isNaN)).toBe(true);
});
