/** What functions are made of: moves of bits, rounding to integers, polynomials. */
import { type BitOp, Expression } from "../expression";
import { add, div, mul, sub } from "../symbols";

type Value = Expression | number;

const bits =
  (op: BitOp) =>
  (...args: Expression[]) =>
    new Expression(op, args);

/** -a where b has the sign bit, as -0 does, else a. */
export const flipsign: (a: Expression, b: Expression) => Expression = bits("flipsign");
/** 2^n for an integer n within the exponents of normal numbers. Any number else. */
export const power2: (n: Expression) => Expression = bits("power2");
/** The k of x = 2^k m with m in [0.7071, 1.4142], for a normal x > 0. Any number else. */
export const exponent: (x: Expression) => Expression = bits("exponent");
/** The m of it. */
export const significand: (x: Expression) => Expression = bits("significand");

/** 1.5 * 2^52: the last place of float64 numbers around it is 1, of float32 numbers around 1.5 * 2^23. */
const ROUNDER = { f64: 1.5 * 2 ** 52, f32: 1.5 * 2 ** 23 };

/** Added to a number and taken off again, it leaves the nearest multiple of `unit`, a power of two. */
export const rounder = (unit = 1, dtype: keyof typeof ROUNDER = "f64"): number => unit * ROUNDER[dtype];

/** The nearest multiple of `unit`, halves to even ones, for |x| < unit * 2^51. */
export const nearest = (x: Expression, unit = 1): Expression => sub(add(x, rounder(unit)), rounder(unit));

/** 1 for an even n, -1 for an odd one, else between. */
export const alternating = (n: Expression): Expression => {
  const place = sub(add(n, n), 1);
  return sub(nearest(place, 4), place);
};

/** sum(coefficients[k] x^k), in halves that do not wait for each other (Estrin's scheme): in Horner's a processor mostly waits. */
export function polynomial(coefficients: readonly number[], x: Expression): Expression {
  const powers = [x];
  const sum = (terms: readonly number[]): Value => {
    if (terms.length === 1) return terms[0]!;
    const level = Math.ceil(Math.log2(terms.length)) - 1;
    for (let known = powers.length; known <= level; known++) powers.push(mul(powers[known - 1]!, powers[known - 1]!));
    return add(mul(sum(terms.slice(2 ** level)), powers[level]!), sum(terms.slice(0, 2 ** level)));
  };
  return sum(coefficients) as Expression;
}

/** The quotient of two polynomials. */
export const quotient = ([above, below]: readonly (readonly number[])[], x: Expression): Expression =>
  div(polynomial(above!, x), polynomial(below!, x));
