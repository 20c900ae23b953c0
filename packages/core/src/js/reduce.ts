/** Reductions and sums of squares. */
import type { LaunchArguments, Specs } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { fromStored } from "../values/half";
import { elements } from "./memory";
import { sumColumns, sumOf } from "./sum";

export function reduce(
  op: Specs["reduce"]["op"],
  dtype: ComputeDType,
  { input, output, outer, length, inner }: LaunchArguments["reduce"],
): void {
  const x = elements(input, dtype);
  const out = elements(output, op === "argmax" ? "i32" : dtype);
  const size = length * inner;
  const divisor = op === "mean" ? length : 1;
  for (let o = 0; o < outer; o++) {
    const start = o * size;
    if (op === "sum" || op === "mean") {
      const sums =
        inner === 1
          ? [sumOf(length, (i) => x[start + i]!)]
          : sumColumns(length, inner, (row, column) => x[start + row * inner + column]!);
      for (let i = 0; i < inner; i++) out[o * inner + i] = sums[i]! / divisor;
      continue;
    }
    for (let i = 0; i < inner; i++) {
      const best = argmax(x, start + i, length, inner);
      // A largest of -0 is stored as 0: devices may meet zeros in any order.
      out[o * inner + i] = op === "argmax" ? best : x[start + i + best * inner]! + 0;
    }
  }
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

export function sumSquares(spec: Specs["sumSquares"], { inputs, output }: LaunchArguments["sumSquares"]): void {
  const { dtype, stored = dtype, nonFinite } = spec;
  const out = elements(output, dtype);
  const widened = fromStored(stored);
  inputs.forEach((input, t) => {
    const x = elements(input, stored);
    out[t] = sumOf(x.length, (i) => {
      const value = widened(x[i]!);
      return nonFinite ? value - value : value * value;
    });
  });
}
