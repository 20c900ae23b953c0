/** Reductions, accumulated in float64. */
import type { LaunchArguments, Specs } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { fromStored } from "../values/half";
import { elements } from "./memory";

export function reduce(
  op: Specs["reduce"]["op"],
  dtype: ComputeDType,
  { input, output, outer, length, inner }: LaunchArguments["reduce"],
): void {
  const x = elements(input, dtype);
  const out = elements(output, op === "argmax" ? "i32" : dtype);
  const reduceLine = LINES[op];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) out[o * inner + i] = reduceLine(x, o * length * inner + i, length, inner);
  }
}

type Line = (x: TypedArray, start: number, length: number, step: number) => number;

function sum(x: TypedArray, start: number, length: number, step: number): number {
  let total = 0;
  for (let i = 0, at = start; i < length; i++, at += step) total += x[at]!;
  return total;
}

/** Position of the largest value: the first of equals, or the first NaN. */
function argmax(x: TypedArray, start: number, length: number, step: number): number {
  let best = 0;
  let largest = x[start]!;
  for (let i = 1; i < length && !Number.isNaN(largest); i++) {
    const value = x[start + i * step]!;
    if (value > largest || Number.isNaN(value)) {
      largest = value;
      best = i;
    }
  }
  return best;
}

const LINES: Record<Specs["reduce"]["op"], Line> = {
  sum,
  mean: (x, start, length, step) => sum(x, start, length, step) / length,
  max: (x, start, length, step) => x[start + argmax(x, start, length, step) * step]!,
  argmax,
};

export function sumSquares(spec: Specs["sumSquares"], { inputs, output }: LaunchArguments["sumSquares"]): void {
  const { dtype, stored = dtype, nonFinite } = spec;
  const out = elements(output, dtype);
  const widened = fromStored(stored);
  inputs.forEach((input, t) => {
    const x = elements(input, stored);
    let total = 0;
    for (let i = 0; i < x.length; i++) {
      const value = widened(x[i]!);
      total += nonFinite ? value - value : value * value;
    }
    out[t] = total;
  });
}
