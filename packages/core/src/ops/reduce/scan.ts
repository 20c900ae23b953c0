/** Each element combined with all before it along an axis. */

import { tidy } from "../../device/scope";
import type { Tensor } from "../../tensor/tensor";
import { clone } from "../cast";
import { concat, reshape, slice } from "../shape/shape";

/**
 * In log2(extent) rounds (Hillis & Steele 1986), each of which combines with what lies 1, 2, 4, ... places before: rounding grows with
 * the logarithm of the extent. From the end if `reversed`.
 */
export function scan(x: Tensor, axis: number, combine: (a: Tensor, b: Tensor) => Tensor, reversed = false): Tensor {
  const extent = x.shape[axis] ?? 1;
  if (extent <= 1) return clone(x); // never x's own memory: what is written to the result must not reach x
  let results = reshape(x, x.shape);
  for (let step = 1; step < extent; step *= 2) {
    const before = results;
    results = tidy(() => {
      const part = (from: number, to: number) => slice(before, from, to, axis);
      const combined = combine(part(step, extent), part(0, extent - step));
      return concat(reversed ? [combined, part(extent - step, extent)] : [part(0, step), combined], axis);
    });
    before.dispose();
  }
  return results;
}
