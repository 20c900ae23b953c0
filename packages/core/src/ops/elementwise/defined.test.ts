/** Ops by definition: special numbers, integers, and what PyTorch's answers in tables don't have. */
import { expect, it } from "vitest";
import * as F from "../../functions";
import { parameter, tensor } from "../../index";

const SPECIAL = [0, -0, 0.3, -0.7, 0.999, 1, -1, 5, 1e3, 1e10, -1e-8, Infinity, -Infinity, Number.NaN];

const near = (value: number, expected: number) =>
  Object.is(value, expected) || Math.abs(value - expected) <= 1e-13 * Math.abs(expected);

const of = (x: number) => tensor([x], { dtype: "f64" });

it.each(["sinh", "cosh", "asinh", "acosh", "atanh", "tan", "atan", "asin", "acos", "log2", "log10", "trunc"] as const)(
  "%s has JavaScript's answers for special numbers, and signs of zeros",
  (name) => {
    const wrong = SPECIAL.filter((x) => !near(F[name](of(x)).dataSync()[0]!, Math[name](x)));
    expect(wrong).toEqual([]);
  },
);

it.each([
  ["atan2", Math.atan2],
  ["hypot", Math.hypot],
  ["fmod", (a, b) => a % b],
] as [keyof typeof F, (a: number, b: number) => number][])("%s does so for pairs", (name, right) => {
  const op = F[name] as unknown as typeof F.atan2;
  const pairs = SPECIAL.flatMap((a) => SPECIAL.map((b) => [a, b] as const));
  expect(pairs.filter(([a, b]) => !near(op(of(a), of(b)).dataSync()[0]!, right(a, b)))).toEqual([]);
});

it("remainders of integers are integers, also of the largest", () => {
  const a = tensor([7, -7, 2147483647, -2147483648], { dtype: "i32" });
  const b = tensor([3, 3, 10, 7], { dtype: "i32" });
  for (const [op, expected] of [
    [F.remainder, [1, 2, 7, 5]],
    [F.fmod, [1, -1, 7, -2]],
    [F.floorDivide, [2, -3, 214748364, -306783379]],
  ] as const) {
    const result = op(a, b);
    expect([result.dtype, result.tolist()]).toEqual(["i32", expected]);
  }
  expect(F.trunc(a).tolist()).toEqual(a.tolist());
  expect(F.remainder(a, 2.5).dtype).toBe("f32");
});

it("logarithms of powers are exact", () => {
  const powers = Array.from({ length: 40 }, (_, i) => 2 ** (i - 20));
  expect(F.log2(tensor(powers)).tolist()).toEqual(powers.map(Math.log2));
  expect(F.log10(tensor([1, 10, 1000, 1e6])).tolist()).toEqual([0, 1, 3, 6]);
});

it("xlogy is 0 where its first operand is, with a gradient for that one alone", () => {
  const a = parameter([0, 2, 0]);
  const b = parameter([3, 3, Number.NaN]);
  F.xlogy(a, b).sum().backward();
  expect(F.xlogy(a, b).tolist()).toEqual([0, Math.fround(2 * Math.log(3)), Number.NaN]);
  expect((a.grad!.tolist() as number[])[0]).toBeCloseTo(Math.log(3));
  expect((b.grad!.tolist() as number[])[0]).toBe(0);
});
