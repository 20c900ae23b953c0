/** erf. */
import type { Expression } from "../expression";
import { maximum, minimum, mul } from "../symbols";
import { ERF } from "./coefficients";
import { quotient } from "./parts";

/** From 4 on erf is 1 in float32. */
export function erf(x: Expression): Expression {
  const within = maximum(minimum(x, 4), -4);
  return mul(within, quotient(ERF, mul(within, within)));
}
