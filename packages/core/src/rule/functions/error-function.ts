/** erf. */
import type { Expression } from "../expression";
import { abs, min, mul } from "../symbols";
import { ERF } from "./coefficients";
import { copysign, quotient } from "./parts";

/** From 4 on erf is 1 in float32. */
export function erf(x: Expression): Expression {
  const magnitude = min(abs(x), 4);
  return copysign(mul(magnitude, quotient(ERF, mul(magnitude, magnitude))), x);
}
