import { expect, it } from "vitest";
import type { Configuration } from "./configuration";
import { amplified, difference, type Outcome } from "./promise";

const outcome = (...weight: number[]): Outcome => ({ losses: [], tensors: { weight } });

it("a bound follows what one unit in the last place does to the reference", () => {
  const right = outcome(0.5, 3);
  const one = { width: 8 } as Configuration;
  const bound = amplified(1e-10, one, right, outcome(0.5, 3 + 3e-10));
  expect(bound).toBeCloseTo(8e-10, 14);
  expect(difference(outcome(0.5, 3 + 6e-10), right, bound)).toBe(null);
  expect(difference(outcome(0.5, 3 + 6e-9), right, bound)).toMatch(/^weight\[1\] of 2/);
  expect(amplified(1e-10, one, right, right)).toBe(1e-10);
  expect(amplified("words", one, right, outcome(9, 9))).toBe("words");
});

it.each([
  ["NaN", [Number.NaN], [1]],
  ["another length", [1, 2], [1]],
])("%s is far from a number", (_, own, right) => {
  expect(difference(outcome(...own), outcome(...right), 0.5)).not.toBe(null);
});
