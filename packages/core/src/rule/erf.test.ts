import "@opt/testkit";
import { expect, it } from "vitest";
import { erf } from "./erf";

/** Correctly rounded, from 60 digits (mpmath 1.3). The two methods of computation meet at 2.5. */
const EXACT = [
  [1e-300, 1.1283791670955126e-300],
  [1e-9, 1.1283791670955127e-9],
  [1e-8, 1.1283791670955126e-8],
  [0.001, 0.0011283787909692365],
  [0.1, 0.1124629160182849],
  [0.25, 0.27632639016823696],
  [0.5, 0.5204998778130465],
  [0.75, 0.7111556336535151],
  [1.0, 0.8427007929497149],
  [1.5, 0.9661051464753108],
  [2.0, 0.9953222650189527],
  [2.4375, 0.9994334567454198],
  [2.5, 0.999593047982555],
  [2.5625, 0.9997098311383266],
  [3.0, 0.9999779095030014],
  [4.0, 0.9999999845827421],
  [5.0, 0.9999999999984626],
  [5.75, 0.9999999999999996],
  [5.96875, 1.0],
] as const;

it.each(EXACT)("erf(%d) within 3 units of float64's last place", (x, expected) => {
  expect(erf(x)).toAgreeWith(expected, { ulp: 3 });
  expect(erf(-x)).toBe(-erf(x));
});

it.each([
  [0, 0],
  [-0, -0],
  [Number.POSITIVE_INFINITY, 1],
  [Number.NEGATIVE_INFINITY, -1],
  [Number.NaN, Number.NaN],
  [1e308, 1],
])("erf(%d) is %d", (x, expected) => expect(erf(x)).toBe(expected));

it("grows with x across the switches between methods", () => {
  for (const x of [1e-8, 2.5, 6]) expect(erf(x * (1 - 2 ** -40))).toBeLessThanOrEqual(erf(x));
});
