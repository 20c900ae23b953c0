/**
 * Square roots divided by a scalar, as Adam's are: they are multiplied by its reciprocal and corrected, to the same bits, because
 * divisions and roots wait for the same slow unit of a processor. For float32 and a true fused multiply-add.
 *
 * With d in (2^-40, 2), y = RN(1/d) and q = RN(x * y), RN(q + RN(x - q * d) * y) is RN(x / d) (Markstein 1990; Brisebarre, Muller &
 * Raina 2004). A root is 0 or in [2^-75, 2^64]: no quotient and no remainder leaves the normal range, and x and d may be taken from
 * [1, 2). Let m be the midpoint of two floats a distance of u apart (2^-23, or 2^-24 where x < d), and t = |x / d - m|.
 * - If t < 2^-45, q is one of m's neighbours: x * y is less than x * 2^-25 from x / d, which is u / 2 or less where x >= d, and where
 *   x < d stays below u - t, save for x >= 2 - 2^-20. But there x / d, where both have at most 8 last digits less than 2, is within
 *   2^-42 of a float, and not near m. So the remainder is exact, and times y it misses x / d - q by its part d * y - 1: by less than
 *   (u / 2 + t) * d * 2^-25. As x - m * d is a multiple of u * 2^-24, and not 0 since m has 25 digits, t is u * 2^-24 / d or more. With
 *   d <= 2 - 2^-23 that is less than t, so the sum is on the same side of m as x / d.
 * - If t >= 2^-45, neither the 1.5 * u that q may be off nor a rounded remainder let the sum miss x / d by more than 3 * u * 2^-24 < t.
 */
import { Expression } from "./expression";
import { type Program, trace } from "./program";
import { div, fma, minimum, mul, neg } from "./symbols";

/** The scalars must be less than this from 1, in float64. */
export const DIVISOR_REACH: number = 1 - 2 ** -40;

/** A program, and what its scalars must be for it. */
export interface MultipliedRoots {
  readonly program: Program;
  /** The slots of the scalars that must be in reach; none where the program divides no root by a scalar. */
  readonly divisors: readonly number[];
}

/** With these signs both zeros keep theirs. The limit makes the remainder of an infinite root infinite, and not NaN. */
function quotient(root: Expression, scalar: Expression): Expression {
  const y = div(-1, scalar);
  const x = neg(root);
  const q = mul(x, y);
  return fma(fma(minimum(q, 2 ** 120), scalar, x), y, q);
}

/** The program without divisions of roots by scalars. */
export function multipliedRoots({ buffers, scalars, nodes, outputs }: Program): MultipliedRoots {
  const divisors: number[] = [];
  const expressions: Expression[] = [];
  for (const { op, args, value } of nodes) {
    const operands = args.map((arg) => expressions[arg]!);
    const [x, d] = operands as [Expression, Expression];
    const isFound = op === "div" && x.op === "sqrt" && d.op === "scalar";
    if (isFound) divisors.push(d.value);
    expressions.push(isFound ? quotient(x, d) : new Expression(op, operands, value));
  }
  const written = outputs.map(({ slot, node }) => ({ slot, expression: expressions[node]! }));
  return { program: trace(buffers, scalars, written), divisors };
}
