/** Ops by definition: special numbers, integers, and what PyTorch's answers in tables don't have. */
import { expect, it } from "vitest";
import { parameter, type Tensor, tensor } from "../../index";
import * as DEFINED from "./defined";

const SPECIAL = [0, -0, 0.3, -0.7, 0.999, 1, -1, 5, 1e3, 1e10, -1e-8, Infinity, -Infinity, Number.NaN];

const OPS = DEFINED as unknown as Readonly<Record<string, (...operands: Tensor[]) => Tensor>>;

const near = (value: number, expected: number) =>
  Object.is(value, expected) || Math.abs(value - expected) <= 1e-13 * Math.abs(expected);

const of = (x: number) => tensor([x], { dtype: "f64" });

it.each(["sinh", "cosh", "asinh", "acosh", "atanh", "tan", "atan", "asin", "acos", "log2", "log10", "trunc"] as const)(
  "%s has JavaScript's answers for special numbers, and signs of zeros",
  (name) => {
    const wrong = SPECIAL.filter((x) => !near(OPS[name]!(of(x)).dataSync()[0]!, Math[name](x)));
    expect(wrong).toEqual([]);
  },
);

it.each([
  ["atan2", Math.atan2],
  ["hypot", Math.hypot],
  ["fmod", (a, b) => a % b],
] as [string, (a: number, b: number) => number][])("%s does so for pairs", (name, right) => {
  const op = OPS[name]!;
  const pairs = SPECIAL.flatMap((a) => SPECIAL.map((b) => [a, b] as const));
  expect(pairs.filter(([a, b]) => !near(op(of(a), of(b)).dataSync()[0]!, right(a, b)))).toEqual([]);
});

it("remainders of integers are integers, also of the largest", () => {
  const a = tensor([7, -7, 2147483647, -2147483648], { dtype: "i32" });
  const b = tensor([3, 3, 10, 7], { dtype: "i32" });
  for (const [op, expected] of [
    [DEFINED.remainder, [1, 2, 7, 5]],
    [DEFINED.fmod, [1, -1, 7, -2]],
    [DEFINED.floorDivide, [2, -3, 214748364, -306783379]],
  ] as const) {
    const result = op(a, b);
    expect([result.dtype, result.tolist()]).toEqual(["i32", expected]);
  }
  expect(DEFINED.trunc(a).tolist()).toEqual(a.tolist());
  expect(DEFINED.remainder(a, 2.5).dtype).toBe("f32");
});

it("logarithms of powers are exact", () => {
  const powers = Array.from({ length: 40 }, (_, i) => 2 ** (i - 20));
  expect(DEFINED.log2(tensor(powers)).tolist()).toEqual(powers.map(Math.log2));
  expect(DEFINED.log10(tensor([1, 10, 1000, 1e6])).tolist()).toEqual([0, 1, 3, 6]);
});

it("xlogy is 0 where its first operand is, with a gradient for that one alone", () => {
  const a = parameter([0, 2, 0]);
  const b = parameter([3, 3, Number.NaN]);
  DEFINED.xlogy(a, b).sum().backward();
  expect(DEFINED.xlogy(a, b).tolist()).toEqual([0, Math.fround(2 * Math.log(3)), Number.NaN]);
  expect((a.grad!.tolist() as number[])[0]).toBeCloseTo(Math.log(3));
  expect((b.grad!.tolist() as number[])[0]).toBe(0);
});
