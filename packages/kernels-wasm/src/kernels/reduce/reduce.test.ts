import type { TypedArray } from "@opt/core/backend";
import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { input, output, runKernel, seeded } from "../run-kernel";
import { reduce } from "./reduce";
import { sumSquares } from "./sum-squares";

type Op = "sum" | "mean" | "max" | "argmax";

function run(
  op: Op,
  x: readonly number[] | TypedArray,
  sizes: [number, number, number],
  dtype: "f32" | "f64" = "f32",
  parts = 1,
) {
  const [outer, length, inner] = sizes;
  const to = output(op === "argmax" ? "i32" : dtype, outer * inner);
  const launch = { input: input(dtype, x), output: to, outer, length, inner };
  return runKernel(reduce, { kind: "reduce", op, dtype }, launch, { parts }).output!;
}

function reference(op: Op, x: ArrayLike<number>, [outer, length, inner]: [number, number, number]): number[] {
  const results: number[] = [];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const line = Array.from({ length }, (_, j) => x[(o * length + j) * inner + i]!);
      const sum = line.reduce((total, value) => total + value, 0);
      const max = line.reduce((best, value) => Math.max(best, value), -Infinity);
      const argmax = line.findIndex((value) => Object.is(value, max));
      results.push({ sum, mean: sum / length, max, argmax }[op]);
    }
  }
  return results;
}

const SIZES: [number, number, number][] = [
  [1, 1, 1],
  [1, 5, 1],
  [3, 17, 1],
  [2, 1027, 1],
  [3, 70_001, 1],
  [17, 65_539, 1],
  [1, 3, 3],
  [2, 33, 17],
  [5, 200, 5],
  [1, 20, 70_001],
];

describe.each(["sum", "mean", "max", "argmax"] as const)("reduce %s", (op) => {
  it.each(SIZES)("agrees with float64 over [%i, %i, %i], on any number of threads", (...sizes) => {
    for (const dtype of sizes[2] > 1000 ? (["f32"] as const) : (["f32", "f64"] as const)) {
      const x = seeded(sizes[0] * sizes[1] * sizes[2], 3, dtype);
      const result = run(op, x, sizes, dtype);
      // Of sums of up to `length` numbers below 1 in size.
      const bound = op === "max" || op === "argmax" ? 0 : (dtype === "f32" ? 5e-7 : 5e-15) * Math.sqrt(sizes[1]);
      const expected = reference(op, x, sizes);
      expect(result.length).toBe(expected.length);
      expect(expected.findIndex((value, i) => !(Math.abs(result[i]! - value) <= bound))).toBe(-1);
      expect(run(op, x, sizes, dtype, 3)).toAgreeWith(result);
    }
  });

  it.each([
    [1, 1],
    [1, 4],
    [1, 21],
  ])("lets NaN win (outer %i, inner %i)", (outer, inner) => {
    const length = 37;
    const x = seeded(outer * length * inner, 4);
    x[7 * inner] = Number.NaN;
    x[5 * inner] = Number.POSITIVE_INFINITY;
    x[9 * inner] = Number.NaN;
    expect(run(op, x, [outer, length, inner])[0]).toBe(op === "argmax" ? 7 : Number.NaN);
  });

  it.each([1, 5, 33])("reduces nothing (inner %i)", (inner) => {
    expect(run(op, [], [0, 3, inner])).toHaveLength(0);
    if (op === "argmax" || op === "max") return;
    expect([...run(op, [], [2, 0, inner])]).toEqual(new Array(2 * inner).fill(op === "sum" ? 0 : Number.NaN));
  });
});

it("argmax gives the first of equals", () => {
  expect([...run("argmax", [1, 3, 3, 2, 3], [1, 5, 1])]).toEqual([1]);
  expect([...run("argmax", [-Infinity, -Infinity], [1, 2, 1])]).toEqual([0]);
});

describe("sumSquares", () => {
  const squares = (lists: (readonly number[] | TypedArray)[], dtype: "f32" | "f64", parts: number) => {
    const inputs = lists.map((list) => input(dtype, list));
    return runKernel(
      sumSquares,
      { kind: "sumSquares", dtype },
      { inputs, output: output(dtype, lists.length) },
      { parts },
    ).output!;
  };

  it.each(["f32", "f64"] as const)("agrees with float64 for each tensor of a list of %s", (dtype) => {
    const lists = [0, 1, 3, 17, 1027, 65_536, 65_537, 200_003, 0].map((length) => seeded(length, length, dtype));
    const result = squares(lists, dtype, 1);
    lists.forEach((list, t) => {
      let sum = 0;
      for (const x of list) sum += x * x;
      expect(Math.abs(result[t]! - sum)).toBeLessThanOrEqual((dtype === "f32" ? 2e-7 : 1e-13) * sum);
    });
    expect(squares(lists, dtype, 3)).toAgreeWith(result);
  });

  it("passes NaN and infinity on, each to its own tensor", () => {
    expect([...squares([[1, Number.NaN], [2], [Infinity], []], "f32", 1)]).toEqual([Number.NaN, 4, Infinity, 0]);
    expect(squares([], "f32", 1)).toHaveLength(0);
  });
});
