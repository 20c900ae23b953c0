/** exp, tanh, log and pow, and exp in float32 for weights. */
import type { Expression } from "../expression";
import { abs, add, div, fma, less, max, min, mul, neg, select, sub } from "../symbols";
import { ATANH, EXPM1 } from "./coefficients";
import { alternating, copysign, exponent, nearest, polynomial, power2, rounder } from "./parts";

/** exp(x) = 2^n (1 + e) with e = exp(r) - 1, |r| <= ln(2) / 2. */
function reduced(x: Expression): { power: Expression; e: Expression } {
  const n = nearest(mul(x, Math.LOG2E));
  const r = sub(x, mul(n, Math.LN2));
  return { power: power2(n), e: mul(r, polynomial(EXPM1, r)) };
}

/** Beyond -104 and 89 exp vanishes, or overflows, in float32. */
export function exp(x: Expression): Expression {
  const { power, e } = reduced(max(min(x, 89), -104));
  return mul(add(e, 1), power);
}

/** q / (q + 2) with q = exp(2|x|) - 1 = (2^n - 1) + 2^n e, which keeps small x exact. From 10 on tanh is 1 in float32. */
export function tanh(x: Expression): Expression {
  const magnitude = abs(x);
  const { power, e } = reduced(min(add(magnitude, magnitude), 20));
  const q = add(sub(power, 1), mul(power, e));
  return copysign(div(q, add(q, 2)), x);
}

/** x = 2^k m: log(x) = k ln(2) + 2 atanh(s) with s = (m - 1) / (m + 1). */
export function log(x: Expression): Expression {
  const k = exponent(x);
  const m = mul(x, power2(neg(k)));
  const s = div(sub(m, 1), add(m, 1));
  const regular = add(mul(k, Math.LN2), mul(add(s, s), polynomial(ATANH, mul(s, s))));
  // 0 gives -Infinity, a NaN itself.
  const special = select(less(x, 0), Number.NaN, sub(x, Number.POSITIVE_INFINITY));
  return select(less(0, x), select(less(x, Number.POSITIVE_INFINITY), regular, x), special);
}

/** Less than any difference of float32 numbers from 1, and any of their magnitudes but 0. */
const [AROUND_ONE, AROUND_ZERO] = [2 ** -30, 2 ** -150];
/** Larger y give what this one gives: only 0, 1 or infinity, and they are even. */
const LARGEST_POWER = 2 ** 40;

/** exp(y log|x|) with C's specials: the sign of x where y is odd, NaN for a finite x < 0 where y is no integer, 1 where either decides. */
export function pow(x: Expression, y: Expression): Expression {
  const isOne = less(abs(sub(x, 1)), AROUND_ONE);
  const isZeroth = less(abs(y), AROUND_ZERO);
  const base = select(isZeroth, 1, abs(x));
  const power = select(isOne, 0, max(min(y, LARGEST_POWER), -LARGEST_POWER));
  const magnitude = exp(mul(power, log(base)));
  const signed = select(less(alternating(power), 0), copysign(magnitude, x), magnitude);
  const isBroken = less(0, abs(sub(power, nearest(power))));
  const isFiniteNegative = (yes: number, no: Expression) =>
    select(less(x, 0), select(less(Number.NEGATIVE_INFINITY, x), yes, no), no);
  return select(isBroken, isFiniteNegative(Number.NaN, magnitude), signed);
}

/** ln(2) in two parts, of which the first has so few bits that its products with exponents are exact. */
const LN2 = [0x162e / 0x2000, Math.LN2 - 0x162e / 0x2000] as const;

/** exp(x) for x up to 80 in float32, to 2e-7 of it, and 0 below -87, where float32 soon has only subnormals. */
export function weight(x: Expression): Expression {
  const toInteger = rounder(1, "f32");
  const n = sub(fma(x, Math.LOG2E, toInteger), toInteger);
  const r = LN2.reduce((rest, part) => fma(n, -part, rest), x);
  const terms = [1, ...EXPM1];
  const last = terms.pop() as Expression | number;
  const e = terms.reduceRight((sum, c) => fma(sum, r, c), last) as Expression;
  return select(less(x, -87), 0, mul(e, power2(n)));
}
