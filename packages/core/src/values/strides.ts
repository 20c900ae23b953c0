/** Walks of strided operands: in row-major order of a shape, each operand by its own strides, which count elements. */
import type { Shape } from "./shape";

/** True for the strides of a dense row-major tensor. An extent of 1 may have any stride. */
export function isDense(shape: Shape, strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== expected) return false;
    expected *= shape[axis]!;
  }
  return true;
}

/** How many elements from its first one on a walk may touch, and how many before it: strides may be negative. */
export function reach(shape: Shape, strides: readonly number[]): { before: number; after: number } {
  let before = 0;
  let after = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    if (shape[axis] === 0) return { before: 0, after: 0 };
    const distance = (shape[axis]! - 1) * strides[axis]!;
    if (distance < 0) before -= distance;
    else after += distance;
  }
  return { before, after };
}

/**
 * The same walk in fewer dimensions: joins neighbours that every operand walks in one stride, and drops extents of 1.
 * Every operand visits the same elements in the same order. At least one dimension stays; the walk of one element has stride 0.
 */
export function mergeDimensions(
  shape: Shape,
  strides: readonly (readonly number[])[],
): { shape: number[]; strides: number[][] } {
  // Innermost first: the axis at which each merged dimension ends, and its extent.
  const axes: number[] = [];
  const merged: number[] = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis]!;
    const last = axes.length - 1;
    if (extent === 1) continue;
    if (last >= 0 && continues(strides, axis, axes[last]!, merged[last]!)) merged[last]! *= extent;
    else {
      axes.push(axis);
      merged.push(extent);
    }
  }
  if (axes.length === 0) return { shape: [1], strides: strides.map(() => [0]) };
  axes.reverse();
  return { shape: merged.reverse(), strides: strides.map((stride) => axes.map((axis) => stride[axis]!)) };
}

/** True if every operand walks `axis` as if it went on with the dimension that ends at `inner`. */
function continues(strides: readonly (readonly number[])[], axis: number, inner: number, extent: number): boolean {
  for (const stride of strides) if (stride[axis] !== stride[inner]! * extent) return false;
  return true;
}
