/** Each element combined with all before it along an axis. */

import { tidy } from "../../device/scope";
import type { Tensor } from "../../tensor/tensor";
import { clone } from "../cast";
import { concat, reshape, slice } from "../shape/shape";

/** Of elements that several tensors hold together: what a later one and all before it give. */
type Combine = (later: readonly Tensor[], before: readonly Tensor[]) => readonly Tensor[];

/**
 * In log2(extent) rounds (Hillis & Steele 1986), each of which combines with what lies 1, 2, 4, ... places before: rounding grows with
 * the logarithm of the extent. From the end if `reversed`.
 */
export function scan(parts: readonly Tensor[], axis: number, combine: Combine, reversed = false): readonly Tensor[] {
  const extent = parts[0]!.shape[axis] ?? 1;
  if (extent <= 1) return parts.map(clone); // never x's own memory: what is written to the result must not reach x
  let results: readonly Tensor[] = parts.map((part) => reshape(part, part.shape));
  for (let step = 1; step < extent; step *= 2) {
    const before = results;
    results = tidy(() => {
      const cut = (from: number, to: number) => before.map((part) => slice(part, from, to, axis));
      const combined = reversed
        ? combine(cut(0, extent - step), cut(step, extent))
        : combine(cut(step, extent), cut(0, extent - step));
      const rest = reversed ? cut(extent - step, extent) : cut(0, step);
      return combined.map((part, i) => concat(reversed ? [part, rest[i]!] : [rest[i]!, part], axis));
    });
    for (const part of before) part.dispose();
  }
  return results;
}
