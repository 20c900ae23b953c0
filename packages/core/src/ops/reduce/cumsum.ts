/** Running sums. */

import { tidy } from "../../device/scope";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { normalizeAxis } from "../../values/shape";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { concat, reshape, slice } from "../shape/shape";

/**
 * Sums of each element along an axis and all before it. Integers are summed as i32.
 * In log2(extent) rounds (Hillis & Steele 1986), each of which adds what lies 1, 2, 4, ... places before: rounding grows with the
 * logarithm of the extent.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cumsum(tensor([1, 2, 3]), 0); // [1, 3, 6]
 */
export function cumsum(x: Tensor, axis: number): Tensor {
  checkTensor("cumsum", x);
  const along = normalizeAxis("cumsum", axis, x.shape.length);
  const compute = isFloat(x.dtype) ? computeDType(x.dtype) : "i32";
  return computeIn(compute, [x], isFloat(x.dtype) ? x.dtype : "i32", (wide) => scanned(wide!, along, false));
}

/** From the end if `reversed`: each direction is the other's adjoint. */
function scanned(x: Tensor, axis: number, reversed: boolean): Tensor {
  const output = noGrad(() => tidy(() => scan(x, axis, reversed)));
  return record("cumsum", output, [x], [], (g) => [scanned(g, axis, !reversed)]);
}

function scan(x: Tensor, axis: number, reversed: boolean): Tensor {
  const extent = x.shape[axis]!;
  if (extent <= 1) return clone(x); // never x's own memory: what is written to the result must not reach x
  let sums = reshape(x, x.shape);
  for (let step = 1; step < extent; step *= 2) {
    const before = sums;
    sums = tidy(() => {
      const part = (from: number, to: number) => slice(before, from, to, axis);
      const added = elementwise("add", [part(step, extent), part(0, extent - step)]);
      return concat(reversed ? [added, part(extent - step, extent)] : [part(0, step), added], axis);
    });
    before.dispose();
  }
  return sums;
}
