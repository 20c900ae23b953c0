/** exp, log, tanh and pow of float32 values held as float64: range and special values come from there, the rounding to float32 is the last. */
import { type FunctionBuilder, f64x2, i64x2, type Value, v128 } from "../assembler";
import { ATANH, EXPM1 } from "./coefficients";
import { both, polynomial, upperWords } from "./polynomial";

type Vector = Value<"v128">;

/** Added to a double of small magnitude, it leaves the nearest integer in the lowest bits. */
const ROUNDER = 1.5 * 2 ** 52;
/** The same as bits. */
const ROUNDER_HIGH = 0x43380000;
const SQRT_HALF = 0x3fe6a09e;
/** Beyond these exp overflows, or vanishes, in float32. */
const LARGEST = 89;
const SMALLEST = -104;

/** exp(x) = 2^n exp(r), |r| <= ln(2)/2: returns exp(r) - 1 and n in the lowest bits. */
function reduceExponent(f: FunctionBuilder, x: Vector): { minusOne: Vector; shifted: Vector } {
  const shifted = f.local("v128", f64x2.add(f64x2.mul(x, both(f, Math.LOG2E)), both(f, ROUNDER)));
  const n = f64x2.sub(shifted, both(f, ROUNDER));
  const r = f.local("v128", f64x2.sub(x, f64x2.mul(n, both(f, Math.LN2))));
  return { minusOne: f64x2.mul(r, polynomial(f, EXPM1, [r])), shifted };
}

/** y * 2^n. A NaN stays one: the lowest bits of float32's NaN are zeros here. */
const scale = (y: Vector, shifted: Vector) => i64x2.add(y, i64x2.shl(shifted, 52));

/** exp, of any x. */
export function exp(f: FunctionBuilder, x: Vector): Vector {
  const clamped = f.local("v128", f64x2.pmax(f64x2.pmin(x, both(f, LARGEST)), both(f, SMALLEST)));
  const { minusOne, shifted } = reduceExponent(f, clamped);
  return scale(f64x2.add(minusOne, both(f, 1)), shifted);
}

/** tanh of x >= 0: e / (e + 2) with e = exp(2x) - 1 = (2^n - 1) + 2^n (exp(r) - 1), which keeps small x exact. */
export function tanh(f: FunctionBuilder, x: Vector): Vector {
  const { minusOne, shifted } = reduceExponent(f, f.local("v128", f64x2.pmin(f64x2.add(x, x), both(f, 20))));
  const power = f.local("v128", scale(both(f, 1), shifted));
  const e = f.local("v128", f64x2.add(f64x2.sub(power, both(f, 1)), f64x2.mul(power, minusOne)));
  return f64x2.div(e, f64x2.add(e, both(f, 2)));
}

/** Natural logarithm: x = 2^k m, log(m) = 2 atanh((m - 1) / (m + 1)). */
export function log(f: FunctionBuilder, x: Vector): Vector {
  const k = f.local("v128", i64x2.shrS(i64x2.sub(x, upperWords(f, SQRT_HALF)), 52));
  const m = f.local("v128", i64x2.sub(x, i64x2.shl(k, 52)));
  const s = f.local("v128", f64x2.div(f64x2.sub(m, both(f, 1)), f64x2.add(m, both(f, 1))));
  const t = f.local("v128", f64x2.mul(s, s));
  const exponent = f64x2.sub(i64x2.add(k, upperWords(f, ROUNDER_HIGH)), both(f, ROUNDER));
  const logOfM = f64x2.mul(f64x2.add(s, s), polynomial(f, ATANH, [t]));
  const regular = f64x2.add(f64x2.mul(exponent, both(f, Math.LN2)), logOfM);
  const isRegular = v128.and(f64x2.gt(x, both(f, 0)), f64x2.lt(x, both(f, Number.POSITIVE_INFINITY)));
  const negative = v128.bitselect(both(f, Number.NaN), x, f64x2.lt(x, both(f, 0)));
  const special = v128.bitselect(both(f, Number.NEGATIVE_INFINITY), negative, f64x2.eq(x, both(f, 0)));
  return v128.bitselect(regular, special, isRegular);
}

/** C's pow: exp(y log|x|), with the sign of x where y is odd, NaN for a finite negative x where y is no integer, and 1 where either decides. */
export function pow(f: FunctionBuilder, x: Vector, y: Vector): Vector {
  const logarithm = log(f, f.local("v128", f64x2.abs(x)));
  const magnitude = exp(f, f.local("v128", f64x2.mul(y, logarithm)));
  const half = f.local("v128", f64x2.mul(y, both(f, 0.5)));
  const isInteger = f.local("v128", f64x2.eq(f64x2.trunc(y), y));
  const isOdd = v128.and(isInteger, f64x2.ne(f64x2.trunc(half), half));
  const signed = v128.or(magnitude, v128.and(v128.and(x, upperWords(f, 0x80000000)), isOdd));
  const isFiniteNegative = v128.and(f64x2.lt(x, both(f, 0)), f64x2.gt(x, both(f, Number.NEGATIVE_INFINITY)));
  const noReal = v128.andnot(isFiniteNegative, isInteger);
  const isInfinite = f64x2.eq(f64x2.abs(y), both(f, Number.POSITIVE_INFINITY));
  const isOne = [
    f64x2.eq(y, both(f, 0)),
    f64x2.eq(x, both(f, 1)),
    v128.and(f64x2.eq(x, both(f, -1)), isInfinite),
  ].reduce((a, b) => v128.or(a, b));
  return v128.bitselect(both(f, 1), v128.bitselect(both(f, Number.NaN), signed, noReal), isOne);
}
