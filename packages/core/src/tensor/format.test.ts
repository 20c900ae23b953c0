// The expected texts are PyTorch's, but for its "tensor(" and ")".
import { describe, expect, it } from "vitest";
import type { DType } from "../values/dtype";
import { format, runsOf } from "./format";

function text(shape: readonly number[], at: (i: number) => number, dtype: DType = "f32"): string {
  const values = runsOf(shape).flatMap(({ start, count }) => Array.from({ length: count }, (_, i) => at(start + i)));
  return format(shape, dtype, values);
}
const of = (values: readonly number[], dtype?: DType) => text([values.length], (i) => values[i]!, dtype);

describe("format writes", () => {
  it.each<[string, string, string]>([
    ["whole floats", of([1, 2]), "[1., 2.]"],
    ["four digits", of([1, 2, 3.5]), "[1.0000, 2.0000, 3.5000]"],
    ["exponents", of([1e-5, 1]), "[1.0000e-05, 1.0000e+00]"],
    ["large whole floats", of([1e9, 1]), "[1.0000e+09, 1.0000e+00]"],
    ["what is not finite", of([Number.NaN, 1, Number.NEGATIVE_INFINITY]), "[ nan,   1., -inf]"],
    ["booleans", of([1, 0], "bool"), "[ true, false]"],
    ["integers", text([2, 2], (i) => [1, 20, 300, 4][i]!, "i32"), "[[  1,  20],\n [300,   4]]"],
    ["a scalar", text([], () => Math.PI), "3.1416"],
    ["nothing", text([2, 0], () => 0), "[]"],
    ["zeros", of([0, -0]), "[ 0., -0.]"],
    ["blocks", text([2, 2, 2], () => 0), "[[[0., 0.],\n  [0., 0.]],\n\n [[0., 0.],\n  [0., 0.]]]"],
    [
      "long axes cut",
      text([100, 100], () => 0),
      `[${["[0., 0., 0.,  ..., 0., 0., 0.]", "[0., 0., 0.,  ..., 0., 0., 0.]", "[0., 0., 0.,  ..., 0., 0., 0.]", "..."]
        .concat(Array(3).fill("[0., 0., 0.,  ..., 0., 0., 0.]"))
        .join(",\n ")}]`,
    ],
    ["a long vector cut", text([2000], () => 1), "[1., 1., 1.,  ..., 1., 1., 1.]"],
  ])("%s", (_, actual, expected) => expect(actual).toBe(expected));

  it("breaks lines before 80 columns", () => {
    for (const line of text([40], (i) => i * 1.25).split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  it("reads no more than it shows", () =>
    expect(runsOf([1000, 1000]).reduce((sum, { count }) => sum + count, 0)).toBe(36));
});
