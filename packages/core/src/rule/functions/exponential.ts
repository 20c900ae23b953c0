/** exp, expm1, tanh, log, log1p and pow, and exp in float32 for weights. */
import type { Expression } from "../expression";
import { abs, add, div, fma, less, maximum, minimum, mul, sub, where } from "../symbols";
import { EXP2M1, EXPM1, LOG2 } from "./coefficients";
import { exponent, flipsign, nearest, polynomial, power2, rounder, significand } from "./parts";

/** 2^x = 2^n (1 + e) with e = 2^r - 1, |r| <= 1/2. */
function reduced(x: Expression): { power: Expression; e: Expression } {
  const n = nearest(x);
  const r = sub(x, n);
  return { power: power2(n), e: mul(r, polynomial(EXP2M1, r)) };
}

/** 2^x. Beyond -151 and 129 it vanishes, or overflows, in float32. */
function exp2(x: Expression): Expression {
  const { power, e } = reduced(maximum(minimum(x, 129), -151));
  return mul(add(e, 1), power);
}

export const exp = (x: Expression): Expression => exp2(mul(x, Math.LOG2E));

/** Below it log(1 + x) and exp(x) - 1 are x in float32, and above it 1 + x is exact in float64. */
const SMALL = 2 ** -29;

/** exp(x) - 1 = (2^n - 1) + 2^n e. */
export function expm1(x: Expression): Expression {
  const { power, e } = reduced(maximum(minimum(mul(x, Math.LOG2E), 129), -151));
  return where(less(abs(x), SMALL), x, add(sub(power, 1), mul(power, e)));
}

/** q / (q + 2) with q = exp(2|x|) - 1 = (2^n - 1) + 2^n e, which keeps small x exact. From 10 on tanh is 1 in float32. */
export function tanh(x: Expression): Expression {
  const { power, e } = reduced(minimum(mul(abs(x), 2 * Math.LOG2E), 30));
  const q = add(sub(power, 1), mul(power, e));
  return flipsign(div(q, add(q, 2)), x);
}

/** More than float64 numbers that logarithms are taken of. */
const LARGEST = 2 ** 1023;

/** log2(x) of x >= 0: x = 2^k m gives k + 2 atanh(s) / ln(2) with s = (m - 1) / (m + 1). */
function log2(x: Expression): Expression {
  const m = significand(x);
  const s = div(sub(m, 1), add(m, 1));
  const regular = add(exponent(x), mul(s, polynomial(LOG2, mul(s, s))));
  // Infinity gives itself, 0 -Infinity, NaN itself.
  return where(less(0, x), maximum(sub(x, LARGEST), regular), sub(x, Number.POSITIVE_INFINITY));
}

export function log(x: Expression): Expression {
  return where(less(x, 0), Number.NaN, mul(log2(x), Math.LN2));
}

export const log1p = (x: Expression): Expression => where(less(abs(x), SMALL), x, log(add(1, x)));

/** Larger y give what this one gives: only 0, 1 or infinity, and they are even. */
const LARGEST_POWER = 2 ** 40;
/** Less than any float32 number but 0, and any difference from 1. */
const TINY = 2 ** -150;

/** 2^(y log2|x|) with C's specials: the sign of x where y is odd, NaN for a finite x < 0 where y is no integer, 1 where either decides. */
export function pow(x: Expression, y: Expression): Expression {
  // No NaN comes out of the inner minimum, nor into the outer one's result.
  const isOne = less(minimum(minimum(1, abs(y)), abs(sub(x, 1))), TINY);
  const power = maximum(minimum(y, LARGEST_POWER), -LARGEST_POWER);
  const magnitude = exp2(where(isOne, 0, mul(power, log2(abs(x)))));
  // 0 where y is even, 1 where it is odd, else between.
  const parity = abs(sub(power, nearest(power, 2)));
  // Below its half is what is negative and finite: x where y is no even number.
  const product = mul(x, parity);
  const unlessOdd = where(less(product, mul(product, 0.5)), Number.NaN, magnitude);
  return where(less(parity, 1), unlessOdd, flipsign(magnitude, x));
}

/** ln(2) in two parts, of which the first has so few bits that its products with exponents are exact. */
const LN2 = [0x162e / 0x2000, Math.LN2 - 0x162e / 0x2000] as const;

/** Doublings that keep 2^n normal while exp(x) is subnormal: taken off at the end, so that there is one rounding. */
const DOUBLINGS = 24;

/** exp(x) for x up to 71 in float32, to 2e-7 of it, subnormal results included; 0 below -104, where half of the least is left. */
export function weight(x: Expression): Expression {
  const toInteger = rounder(1, "f32");
  const n = sub(fma(x, Math.LOG2E, toInteger), toInteger);
  const r = LN2.reduce((rest, part) => fma(n, -part, rest), x);
  const terms = [1, ...EXPM1];
  const last = terms.pop() as Expression | number;
  const e = terms.reduceRight((sum, c) => fma(sum, r, c), last) as Expression;
  return where(less(x, -104), 0, mul(mul(e, power2(add(n, DOUBLINGS))), 2 ** -DOUBLINGS));
}
