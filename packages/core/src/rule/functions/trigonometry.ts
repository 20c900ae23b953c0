/** sin and cos. */
import type { Expression } from "../expression";
import { abs, add, mul, neg, sub } from "../symbols";
import { PI, SIN } from "./coefficients";
import { alternating, nearest, polynomial } from "./parts";

/** Up to here products of the parts of pi are exact. */
export const REACH = 2 ** 20;

/** sin(x - turns pi), for a difference within pi / 2. */
function sinBeside(x: Expression, turns: Expression): Expression {
  const r = PI.reduce((rest, part) => sub(rest, mul(turns, part)), x);
  return mul(r, polynomial(SIN, mul(r, r)));
}

/** (-1)^n sin(x - n pi), n the integer nearest to x / pi. */
export function sin(x: Expression): Expression {
  const n = nearest(mul(x, 1 / Math.PI));
  return mul(sinBeside(x, n), alternating(n));
}

/** -(-1)^n sin(|x| - (n + 1/2) pi). */
export function cos(x: Expression): Expression {
  const magnitude = abs(x);
  const n = nearest(sub(mul(magnitude, 1 / Math.PI), 0.5));
  return mul(sinBeside(magnitude, add(n, 0.5)), neg(alternating(n)));
}
