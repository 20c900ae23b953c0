/** How loops over one output walk through their inputs. */
import type { Slice } from "../../backend/memory";

export function isSameSlice(a: Slice, b: Slice): boolean {
  return a.memory === b.memory && a.byteOffset === b.byteOffset && a.length === b.length;
}

/** A loop in row-major order: its extents, and of each input the strides. */
export interface Walk {
  readonly shape: readonly number[];
  readonly strides: readonly (readonly number[])[];
}

/** The same walk in extents that both shapes can be cut into; undefined if no such extents exist. */
export function refined(a: readonly number[], b: readonly number[]): readonly number[] | undefined {
  const cuts = [...new Set([...innerSizes(a), ...innerSizes(b)])].sort((x, y) => x - y);
  const extents: number[] = [];
  for (let i = 1; i < cuts.length; i++) {
    if (cuts[i]! % cuts[i - 1]! !== 0) return undefined;
    extents.push(cuts[i]! / cuts[i - 1]!);
  }
  return extents.length === 0 ? [1] : extents.reverse();
}

/** How many elements the inner axes have, from none to all. */
function innerSizes(shape: readonly number[]): number[] {
  let size = 1;
  return [1, ...shape.toReversed().map((extent) => (size *= extent))];
}

/** Strides of one walk in extents that its own are cut into. */
export function refinedStrides(
  shape: readonly number[],
  strides: readonly number[],
  extents: readonly number[],
): number[] {
  const fine: number[] = [];
  let inner = extents.length - 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    let covered = 1;
    while (covered < shape[axis]!) {
      fine.unshift(strides[axis]! * covered);
      covered *= extents[inner--]!;
    }
  }
  while (fine.length < extents.length) fine.unshift(0);
  return fine;
}
