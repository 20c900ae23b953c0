/** Tangents, and the inverses of sine, cosine and tangent. */
import { Expression } from "../../rule/expression";
import { abs, add, cos, div, fma, less, mul, neg, sin, sqrt, sub, where } from "../../rule/symbols";
import { defineOp } from "./define-op";

type E = Expression;

const HALF_PI = Math.PI / 2;

/** Of atan's series in the square of its argument, from the highest power on: at tan(pi / 16) they give all digits of float64. */
const SERIES = Array.from({ length: 13 }, (_, i) => (i % 2 === 0 ? 1 : -1) / (2 * i + 1)).reverse();

/** The tangent of half the angle whose tangent is t. */
const halved = (t: E) => div(t, add(1, sqrt(add(1, mul(t, t)))));

/** The arc tangent of 0 to 1, by the series at a quarter of the angle. */
function smallAtan(t: E): E {
  const quarter = halved(halved(t));
  const square = mul(quarter, quarter);
  const sum = SERIES.reduce<E>((sum, factor) => fma(sum, square, factor), Expression.constant(0));
  return mul(4, mul(quarter, sum));
}

/** The angle of a point whose height a and width b are not negative. */
function firstQuadrant(a: E, b: E): E {
  const isSteep = less(b, a);
  const [high, low] = [where(isSteep, a, b), where(isSteep, b, a)];
  const quotient = div(low, high);
  const finite = where(less(low, Number.POSITIVE_INFINITY), quotient, where(less(0, low), 1, low));
  const angle = smallAtan(where(less(0, high), finite, add(high, low)));
  return where(isSteep, sub(HALF_PI, angle), angle);
}

/** With the sign of x, also of a zero. */
const signed = (x: E, size: E) => where(less(x, 0), neg(size), where(less(0, x), size, x));

/** The angle whose sine and cosine are as a to b, for b from 0 on. */
const angleOf = (a: E, b: E) => signed(a, firstQuadrant(abs(a), b));

/** sqrt(1 - x^2), with all digits near 1. */
const otherSide = (x: E) => sqrt(mul(sub(1, x), add(1, x)));

/**
 * The tangent of x, in radians.
 *
 * @example
 * tan(tensor([0, Math.PI / 4])); // [0, 1]
 */
export const tan = /* @__PURE__ */ defineOp({
  name: "tan",
  torch: "torch.tan(a)",
  inputs: 1,
  domain: { low: -1.2, high: 1.2, finite: true },
  forward: (x) => div(sin(x!), cos(x!)),
  gradients: [(g, y) => mul(g, add(1, mul(y, y)))],
});

/**
 * The angle in radians whose tangent is x.
 *
 * @example
 * atan(tensor([0, 1])); // [0, 0.7854]
 */
export const atan = /* @__PURE__ */ defineOp({
  name: "atan",
  torch: "torch.atan(a)",
  inputs: 1,
  domain: { finite: true },
  forward: (x) => angleOf(x!, Expression.constant(1)),
  gradients: [(g, _y, x) => div(g, add(1, mul(x!, x!)))],
});

/**
 * The angle in radians whose sine is x; NaN beyond -1 and 1.
 *
 * @example
 * asin(tensor([0, 1])); // [0, 1.5708]
 */
export const asin = /* @__PURE__ */ defineOp({
  name: "asin",
  torch: "torch.asin(a)",
  inputs: 1,
  domain: { low: -0.95, high: 0.95, finite: true },
  forward: (x) => angleOf(x!, otherSide(x!)),
  gradients: [(g, _y, x) => div(g, otherSide(x!))],
});

/**
 * The angle in radians whose cosine is x; NaN beyond -1 and 1.
 *
 * @example
 * acos(tensor([1, 0])); // [0, 1.5708]
 */
export const acos = /* @__PURE__ */ defineOp({
  name: "acos",
  torch: "torch.acos(a)",
  inputs: 1,
  domain: { low: -0.95, high: 0.95, finite: true },
  forward: (x) => mul(2, firstQuadrant(sqrt(sub(1, x!)), sqrt(add(1, x!)))),
  gradients: [(g, _y, x) => neg(div(g, otherSide(x!)))],
});

/** x, or -1 times it where `sign` is negative, also a negative zero. */
const withSign = (x: E, sign: E) => where(less(div(1, sign), 0), neg(x), x);

/**
 * The angle in radians of the point (b, a), from -pi to pi.
 *
 * @example
 * atan2(tensor([1, -1]), tensor([0, -1])); // [1.5708, -2.3562]
 */
export const atan2 = /* @__PURE__ */ defineOp({
  name: "atan2",
  torch: "torch.atan2(a, b)",
  inputs: 2,
  domain: { finite: true },
  forward: (a, b) => {
    const near = firstQuadrant(abs(a!), abs(b!));
    const isLeft = less(where(less(b!, 0), b!, div(1, b!)), 0);
    const angle = where(isLeft, sub(Math.PI, near), near);
    return where(less(a!, 0), neg(angle), where(less(0, a!), angle, withSign(angle, a!)));
  },
  gradients: [
    (g, _y, a, b) => mul(g, div(b!, add(mul(a!, a!), mul(b!, b!)))),
    (g, _y, a, b) => mul(g, neg(div(a!, add(mul(a!, a!), mul(b!, b!))))),
  ],
});

/** 0 at a zero, elsewhere `value` of x. */
const ifNotZero = (x: E, atZero: number, value: (x: E) => E) => {
  const safe = where(less(x, 0), x, where(less(0, x), x, where(less(x, 1), 1, x)));
  const isZero = (no: E) => where(less(x, 0), no, where(less(0, x), no, where(less(x, 1), atZero, no)));
  return isZero(value(safe));
};

/**
 * sin(pi x) / (pi x), and 1 at 0.
 *
 * @example
 * sinc(tensor([0, 0.5])); // [1, 0.6366]
 */
export const sinc = /* @__PURE__ */ defineOp({
  name: "sinc",
  torch: "torch.sinc(a)",
  inputs: 1,
  domain: { finite: true },
  forward: (x) => ifNotZero(mul(x!, Math.PI), 1, (angle) => div(sin(angle), angle)),
  gradients: [
    (g, y, x) =>
      mul(
        g,
        ifNotZero(x!, 0, (x) => div(sub(cos(mul(x, Math.PI)), y), x)),
      ),
  ],
});

/** Infinity where x, which is not negative, is that; elsewhere, also where it is NaN, `other`. */
const ifInfinite = (x: E, other: E) =>
  where(less(x, Number.POSITIVE_INFINITY), other, where(less(1, x), Number.POSITIVE_INFINITY, other));

/**
 * sqrt(a^2 + b^2), of which no square overflows.
 *
 * @example
 * hypot(tensor([3]), tensor([4])); // [5]
 */
export const hypot = /* @__PURE__ */ defineOp({
  name: "hypot",
  torch: "torch.hypot(a, b)",
  inputs: 2,
  domain: { finite: true },
  forward: (a, b) => {
    const isSteep = less(abs(b!), abs(a!));
    const [high, low] = [where(isSteep, abs(a!), abs(b!)), where(isSteep, abs(b!), abs(a!))];
    const ratio = where(less(0, high), div(low, high), low);
    const ofFinite = mul(high, sqrt(add(1, mul(ratio, ratio))));
    return ifInfinite(abs(a!), ifInfinite(abs(b!), ofFinite));
  },
  gradients: [(g, y, a) => mul(g, div(a!, y)), (g, y, _a, b) => mul(g, div(b!, y))],
});
