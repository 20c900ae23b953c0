/** Steps, signs and the larger of two where one is NaN. */
import type { Expression } from "../../rule/expression";
import { abs, div, less, mul, neg, where } from "../../rule/symbols";
import { ifAtMost, ifNumber } from "./conditions";
import { defineOp } from "./define-op";
import { defineWideOp } from "./define-wide-op";

type E = Expression;

/**
 * 0 below 0, 1 above it, and b where a is 0. No gradient flows.
 *
 * @example
 * heaviside(tensor([-2, 0, 3]), 0.5); // [0, 0.5, 1]
 */
export const heaviside = /* @__PURE__ */ defineWideOp({
  name: "heaviside",
  torch: "torch.heaviside(a.detach(), b.detach())",
  inputs: 2,
  forward: (a, b) => where(less(0, a!), 1, where(less(a!, 0), 0, ifNumber(a!, b!, 0))),
  gradients: [null, null],
  keepsIntegers: true,
});

/** `yes` if x is negative, -0 included. */
const ifNegative = (x: E, yes: E, no: E) =>
  where(less(x, 0), yes, where(less(0, x), no, where(less(div(1, x), 0), yes, no)));

/**
 * The size of a with the sign of b, of which NaN counts as positive.
 *
 * @example
 * copysign(tensor([1, -2]), -0); // [-1, -2]
 */
export const copysign = /* @__PURE__ */ defineOp({
  name: "copysign",
  torch: "torch.copysign(a, b)",
  inputs: 2,
  domain: { finite: true },
  forward: (a, b) => ifNegative(b!, neg(abs(a!)), abs(a!)),
  gradients: [(g, y, a) => mul(g, where(less(a!, 0), div(y, a!), where(less(0, a!), div(y, a!), 0))), (g) => mul(g, 0)],
});

/** The larger of two or, turned round, the smaller; of a number and NaN the number. */
const ofNumbers = (name: "fmax" | "fmin", [low, high]: readonly [0 | 1, 0 | 1]) => {
  const part = (a: E, b: E, ofA: E | number, ofB: E | number) => {
    const [x, y] = [[a, b][low]!, [a, b][high]!];
    return ifAtMost(x, y, ofA, ifNumber(b, ofB, ofA));
  };
  return defineWideOp({
    name,
    torch: `torch.${name}(a, b)`,
    inputs: 2,
    forward: (a, b) => part(a!, b!, a!, b!),
    gradients: [(g, _y, a, b) => part(a!, b!, g, 0), (g, _y, a, b) => part(a!, b!, 0, g)],
    keepsIntegers: true,
  });
};

/**
 * The larger one, or the one that is no NaN.
 *
 * @example
 * fmax(tensor([1, NaN]), tensor([3, 2])); // [3, 2]
 */
export const fmax = /* @__PURE__ */ ofNumbers("fmax", [1, 0]);

/**
 * The smaller one, or the one that is no NaN.
 *
 * @example
 * fmin(tensor([1, NaN]), tensor([3, 2])); // [1, 2]
 */
export const fmin = /* @__PURE__ */ ofNumbers("fmin", [0, 1]);

/**
 * 1 / x.
 *
 * @example
 * reciprocal(tensor([2, 4])); // [0.5, 0.25]
 */
export const reciprocal = /* @__PURE__ */ defineOp({
  name: "reciprocal",
  torch: "torch.reciprocal(a)",
  inputs: 1,
  domain: { positive: true, finite: true },
  forward: (x) => div(1, x!),
  gradients: [(g, y) => neg(mul(g, mul(y, y)))],
});
