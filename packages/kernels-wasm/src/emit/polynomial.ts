/** Horner's scheme on vectors of float64. */
import { f64x2, type Value } from "../assembler";

export const both = (value: number): Value<"v128"> => f64x2.const([value, value]);

/** The sum of coefficients[k] * x^k. Plain multiplies and adds: the same bits on every machine. x is read several times: a local. */
export function polynomial(coefficients: readonly number[], x: Value<"v128">): Value<"v128"> {
  const [highest, ...lower] = [...coefficients].reverse().map(both);
  return lower.reduce((sum, coefficient) => f64x2.add(f64x2.mul(sum, x), coefficient), highest as Value<"v128">);
}
