/** The gamma function's logarithm and its slope, and the inverse of the error function. */
import { Expression } from "../../rule/expression";
import { abs, add, cos, div, erf, exp, less, log, mul, neg, sin, sqrt, sub, where } from "../../rule/symbols";
import { defineWideOp } from "./define-wide-op";
import { nearest } from "./round";

type E = Expression;

const HALF_LOG_TWO_PI = 0.5 * Math.log(2 * Math.PI);
/** From here on the series of Stirling have all digits of float64. */
const STIRLING = 10;
/** B(2k) / (2k (2k - 1)) and B(2k) / (2k), from the highest on: of the powers 1 / x^2 in the two series. */
const LOG_SERIES = [1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12];
const SLOPE_SERIES = [1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12];

const polynomial = (factors: readonly number[], x: E) =>
  factors.reduce<E>((sum, factor) => add(mul(sum, x), factor), Expression.constant(0));

/** log(gamma(x)) for x from 1/2 on: x (x + 1) ... (x + 9) is divided out of what is small. */
function logGammaOfPositive(x: E): E {
  const isSmall = less(x, STIRLING);
  const at = where(isSmall, add(x, STIRLING), x);
  const square = div(1, mul(at, at));
  const series = sub(
    mul(sub(at, 0.5), log(at)),
    sub(at, add(HALF_LOG_TWO_PI, div(polynomial(LOG_SERIES, square), at))),
  );
  const product = Array.from({ length: STIRLING }, (_, i) => add(x, i)).reduce((a, b) => mul(a, b));
  return where(isSmall, sub(series, log(product)), series);
}

/** The slope of the same, for all x > 0. */
export function digammaOfPositive(x: E): E {
  const isSmall = less(x, STIRLING);
  const at = where(isSmall, add(x, STIRLING), x);
  const square = div(1, mul(at, at));
  const series = sub(sub(log(at), div(0.5, at)), mul(polynomial(SLOPE_SERIES, square), square));
  const sum = Array.from({ length: STIRLING }, (_, i) => div(1, add(x, i))).reduce((a, b) => add(a, b));
  return where(isSmall, sub(series, sum), series);
}

/** x - the nearest whole number: sines of pi x keep their digits. Without `whole` x itself, whose slope is seen. */
const fromWhole = (x: E, whole?: E) => (whole === undefined ? x : sub(x, nearest(x, whole)));

/** |sin(pi x)| */
const sineOf = (x: E, whole?: E) => abs(sin(mul(Math.PI, fromWhole(x, whole))));

/** cot(pi x) */
function cotangentOf(x: E, whole?: E): E {
  const angle = mul(Math.PI, fromWhole(x, whole));
  return div(cos(angle), sin(angle));
}

const logGammaOf = (x: E, whole: E) => {
  const isLeft = less(x, 0.5);
  const right = logGammaOfPositive(where(isLeft, sub(1, x), x));
  const value = where(isLeft, sub(Math.log(Math.PI), add(log(sineOf(x, whole)), right)), right);
  return ifFinite(x, value, abs(x));
};

const digammaOf = (x: E, whole?: E) => {
  const isLeft = less(x, 0.5);
  const right = digammaOfPositive(where(isLeft, sub(1, x), x));
  const value = where(isLeft, sub(right, mul(Math.PI, cotangentOf(x, whole))), right);
  return where(less(x, Number.POSITIVE_INFINITY), value, x);
};

/** `no` where x is infinite or NaN. */
const ifFinite = (x: E, yes: E, no: E) => where(less(abs(x), Number.POSITIVE_INFINITY), yes, no);

/**
 * log(|gamma(x)|), of which float32 is computed in float64.
 *
 * @example
 * lgamma(tensor([5, 0.5])); // [3.1781, 0.5724]
 */
export const lgamma = /* @__PURE__ */ defineWideOp({
  name: "lgamma",
  torch: "torch.lgamma(a)",
  inputs: 1,
  domain: { positive: true, finite: true },
  forward: (x, whole) => logGammaOf(x!, whole!),
  gradients: [(g, _y, x, whole) => mul(g, digammaOf(x!, whole!))],
  recorded: [(g, _y, x) => mul(g, digammaOf(x!)), null],
  rounds: true,
  isWide: true,
});

/**
 * The slope of `lgamma`, of which float32 is computed in float64.
 *
 * @example
 * digamma(tensor([1, 0.5])); // [-0.5772, -1.9635]
 */
export const digamma = /* @__PURE__ */ defineWideOp({
  name: "digamma",
  torch: "torch.digamma(a)",
  inputs: 1,
  domain: { positive: true, finite: true },
  forward: (x, whole) => digammaOf(x!, whole!),
  gradients: [(g, _y, x, whole) => mul(g, trigammaOf(x!, whole!))],
  recorded: [(g, _y, x) => mul(g, trigammaOf(x!)), null],
  rounds: true,
  isWide: true,
});

/** B(2k), from the highest on: of the powers 1 / x^2 in the slope of digamma's series. */
const SECOND_SERIES = [7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6];

function trigammaOf(x: E, whole?: E): E {
  const isLeft = less(x, 0.5);
  const right = where(isLeft, sub(1, x), x);
  const isSmall = less(right, STIRLING);
  const at = where(isSmall, add(right, STIRLING), right);
  const [inverse, square] = [div(1, at), div(1, mul(at, at))];
  const series = add(add(inverse, mul(0.5, square)), mul(mul(polynomial(SECOND_SERIES, square), square), inverse));
  const squares = Array.from({ length: STIRLING }, (_, i) => {
    const place = add(right, i);
    return div(1, mul(place, place));
  });
  const positive = where(
    isSmall,
    add(
      series,
      squares.reduce((a, b) => add(a, b)),
    ),
    series,
  );
  const angle = div(Math.PI, sineOf(x, whole));
  return where(isLeft, sub(mul(angle, angle), positive), positive);
}

/** Giles 2010, from the highest power on: of w - 2.5, where w = -log(1 - x^2) is below 5, and of sqrt(w) - 3. */
const NEAR = [
  2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503, -0.00417768164,
  0.246640727, 1.50140941,
];
const FAR = [
  -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
  1.00167406, 2.83297682,
];

function erfinvOf(x: E): E {
  const w = neg(log(mul(sub(1, x), add(1, x))));
  const isNear = less(w, 5);
  const far = sqrt(where(isNear, 9, w));
  const first = mul(x, where(isNear, polynomial(NEAR, sub(w, 2.5)), polynomial(FAR, sub(far, 3))));
  // Newton's steps double the digits.
  const better = (y: E) => sub(y, div(sub(erf(y), x), mul(2 / Math.sqrt(Math.PI), exp(neg(mul(y, y))))));
  const value = better(better(first));
  return where(less(abs(x), 1), value, where(less(1, abs(x)), sub(x, div(x, 0)), div(x, 0)));
}

/**
 * The inverse of erf; NaN beyond -1 and 1. Float32 is computed in float64.
 *
 * @example
 * erfinv(tensor([0, 0.5])); // [0, 0.4769]
 */
export const erfinv = /* @__PURE__ */ defineWideOp({
  name: "erfinv",
  torch: "torch.erfinv(a)",
  inputs: 1,
  domain: { low: -0.9, high: 0.9, finite: true },
  forward: (x) => erfinvOf(x!),
  gradients: [(g, y) => mul(g, mul(Math.sqrt(Math.PI) / 2, exp(mul(y, y))))],
  isWide: true,
});
