// Devices without float64 compare integers with the number that `comparedScalars` gives them: the answers stay.
import fc from "fast-check";
import { expect, it } from "vitest";
import { comparedScalars } from "./compute";

const COMPARISONS = {
  eq: (a: number, b: number) => a === b,
  ne: (a: number, b: number) => a !== b,
  less: (a: number, b: number) => a < b,
  le: (a: number, b: number) => a <= b,
} as const;

it("an integer compares with any number, on either side, as with the one in its place", () => {
  const integer = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const edge = fc.constantFrom(0, 1, 2 ** 24 + 1, 2 ** 31 - 1, -(2 ** 31));
  const near = fc.constantFrom(-1, -0.5, 0, 0.5, 1);
  const far = fc.constantFrom(1e10, -1e10, Infinity, -Infinity, 2 ** 31, 2 ** 32);
  const name = fc.constantFrom(...(Object.keys(COMPARISONS) as (keyof typeof COMPARISONS)[]));
  const scalar = (x: number) =>
    fc.oneof(
      near.map((offset) => x + offset),
      far,
    );
  const pair = fc.oneof(integer, edge).chain((x) => fc.tuple(fc.constant(x), scalar(x)));
  fc.assert(
    fc.property(name, pair, fc.constantFrom("tn", "nt"), (name, [x, given], pattern) => {
      const { compute, scalars } = comparedScalars(name, pattern, [given]);
      const [held, taken] = [compute === "i32" ? x : Math.fround(x), scalars[0]!];
      if (compute === "i32") expect(taken === (taken | 0)).toBe(true);
      const compare = (x: number, n: number) => (pattern === "tn" ? COMPARISONS[name](x, n) : COMPARISONS[name](n, x));
      expect(compare(held, taken)).toBe(compare(x, given));
    }),
    { numRuns: 1000 },
  );
});
