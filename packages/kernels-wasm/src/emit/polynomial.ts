/** Constants and polynomials on vectors of float64. */
import { type FunctionBuilder, f64x2, i32x4, type Local, type Value } from "../assembler";

type Vector = Value<"v128">;

/** A number in both lanes. */
export const both = (f: FunctionBuilder, value: number): Vector => f.constant(f64x2.const([value, value]));

/** The upper words of both lanes: signs, exponents, leading digits. */
export const upperWords = (f: FunctionBuilder, word: number): Vector => f.constant(i32x4.const([0, word, 0, word]));

/**
 * The sum of coefficients[k] * x^k, in halves that do not wait for each other (Estrin's scheme): in Horner's a processor mostly waits. Plain
 * multiplies and adds: the same bits on every machine. `powers`: x to 1, 2, 4 and so on, as far as they are known; others are added.
 */
export function polynomial(f: FunctionBuilder, coefficients: readonly number[], powers: Local<"v128">[]): Vector {
  const sum = (terms: readonly number[]): Vector => {
    if (terms.length === 1) return both(f, terms[0]!);
    const level = Math.ceil(Math.log2(terms.length)) - 1;
    for (let known = powers.length; known <= level; known++) {
      powers.push(f.local("v128", f64x2.mul(powers[known - 1]!, powers[known - 1]!)));
    }
    const lower = f.local("v128", sum(terms.slice(0, 2 ** level)));
    return f64x2.add(f64x2.mul(sum(terms.slice(2 ** level)), powers[level]!), lower);
  };
  return sum(coefficients);
}
