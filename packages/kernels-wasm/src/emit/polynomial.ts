/** Constants and Horner's scheme on vectors of float64. */
import { type FunctionBuilder, f64x2, i32x4, type Value } from "../assembler";

type Vector = Value<"v128">;

/** A number in both lanes. */
export const both = (f: FunctionBuilder, value: number): Vector => f.constant(f64x2.const([value, value]));

/** The upper words of both lanes: signs, exponents, leading digits. */
export const upperWords = (f: FunctionBuilder, word: number): Vector => f.constant(i32x4.const([0, word, 0, word]));

/** The sum of coefficients[k] * x^k. Plain multiplies and adds: the same bits on every machine. x is read several times: a local. */
export function polynomial(f: FunctionBuilder, coefficients: readonly number[], x: Vector): Vector {
  const [highest, ...lower] = [...coefficients].reverse().map((coefficient) => both(f, coefficient));
  return lower.reduce((sum, coefficient) => f64x2.add(f64x2.mul(sum, x), coefficient), highest as Vector);
}
