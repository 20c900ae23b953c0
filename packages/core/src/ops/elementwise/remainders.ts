/** Whole parts, fractions, and what divisions leave. */
import type { Expression } from "../../rule/expression";
import { abs, add, div, fma, less, mul, neg, sub, where } from "../../rule/symbols";
import { defineWideOp } from "./define-wide-op";
import { nearest } from "./round";

type E = Expression;

const noSlope = (g: E) => where(less(g, g), g, 0);

/** x without its fraction. A zero keeps its sign. */
function truncated(x: E, whole: E): E {
  const near = nearest(abs(x), whole);
  const size = where(less(abs(x), near), sub(near, 1), near);
  return where(less(x, 0), neg(size), where(less(0, x), size, x));
}

/** a - b trunc(a / b), with the sign of a. The second pass is exact where the first quotient has lost digits. */
function left(a: E, b: E, whole: E): E {
  const [size, step] = [abs(a), abs(b)];
  const first = fma(neg(truncated(div(size, step), whole)), step, size);
  const rest = fma(neg(nearest(div(first, step), whole)), step, first);
  const positive = where(less(rest, 0), add(rest, step), where(less(rest, step), rest, sub(rest, step)));
  const ofFinite = where(less(step, Number.POSITIVE_INFINITY), positive, where(less(size, step), size, positive));
  return where(less(a, 0), neg(ofFinite), ofFinite);
}

/** The same with the sign of b. */
function remainderOf(a: E, b: E, whole: E): E {
  const rest = left(a, b, whole);
  const changed = add(rest, b);
  return where(
    less(rest, 0),
    where(less(0, b), changed, rest),
    where(less(0, rest), where(less(b, 0), changed, rest), rest),
  );
}

/**
 * x without its fraction. The gradient is 0.
 *
 * @example
 * trunc(tensor([1.7, -1.7])); // [1, -1]
 */
export const trunc = /* @__PURE__ */ defineWideOp({
  name: "trunc",
  torch: "torch.trunc(a)",
  inputs: 1,
  forward: (x, whole) => truncated(x!, whole!),
  gradients: [noSlope],
  rounds: true,
  keepsIntegers: true,
});

/**
 * x - trunc(x).
 *
 * @example
 * frac(tensor([1.5, -1.25])); // [0.5, -0.25]
 */
export const frac = /* @__PURE__ */ defineWideOp({
  name: "frac",
  torch: "torch.frac(a)",
  inputs: 1,
  domain: { finite: true },
  forward: (x, whole) => sub(x!, truncated(x!, whole!)),
  gradients: [(g) => g],
  rounds: true,
  keepsIntegers: true,
});

/**
 * What is left of a after whole times b, with the sign of b: `a % b` of Python. Exact for quotients below 2^46 in float32, 2^104 in float64.
 *
 * @example
 * remainder(tensor([5, -5]), 3); // [2, 1]
 */
export const remainder = /* @__PURE__ */ defineWideOp({
  name: "remainder",
  torch: "torch.remainder(a, b)",
  inputs: 2,
  domain: { positive: true, finite: true },
  forward: (a, b, whole) => remainderOf(a!, b!, whole!),
  gradients: [(g) => g, (g, y, a, b, whole) => mul(g, neg(nearest(div(sub(a!, y), b!), whole!)))],
  flat: [0, 1],
  rounds: true,
  keepsIntegers: true,
});

/**
 * What is left of a after whole times b, with the sign of a: `a % b` of JavaScript. Exact as `remainder`.
 *
 * @example
 * fmod(tensor([5, -5]), 3); // [2, -2]
 */
export const fmod = /* @__PURE__ */ defineWideOp({
  name: "fmod",
  torch: "torch.fmod(a, b)",
  inputs: 2,
  domain: { positive: true, finite: true },
  forward: (a, b, whole) => left(a!, b!, whole!),
  gradients: [(g) => g, (g, y, a, b, whole) => mul(g, neg(nearest(div(sub(a!, y), b!), whole!)))],
  flat: [0, 1],
  rounds: true,
  keepsIntegers: true,
});

/**
 * The largest whole number that is not above a / b: `a // b` of Python. No gradient flows.
 *
 * @example
 * floorDivide(tensor([5, -5]), 3); // [1, -2]
 */
export const floorDivide = /* @__PURE__ */ defineWideOp({
  name: "floorDivide",
  torch: "torch.floor_divide(a.detach(), b.detach())",
  inputs: 2,
  domain: { positive: true, finite: true },
  forward: (a, b, whole) => {
    const quotient = nearest(div(sub(a!, remainderOf(a!, b!, whole!)), b!), whole!);
    return where(less(b!, 0), quotient, where(less(0, b!), quotient, div(a!, b!)));
  },
  gradients: [null, null],
  rounds: true,
  keepsIntegers: true,
});
