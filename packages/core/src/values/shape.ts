/** Arithmetic on shapes. */
import { check } from "../errors/errors";
import { show } from "../errors/show";

export type Shape = readonly number[];

/** The number of elements of a shape. */
export function sizeOf(shape: Shape): number {
  let size = 1;
  for (let axis = 0; axis < shape.length; axis++) size *= shape[axis]!;
  return size;
}

export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true; // results share the shapes of their operands
  if (a.length !== b.length) return false;
  for (let axis = 0; axis < a.length; axis++) if (a[axis] !== b[axis]) return false;
  return true;
}

/** "[2, 3]" */
export function showShape(shape: Shape): string {
  return `[${shape.join(", ")}]`;
}

export function checkShape(where: string, shape: Shape): void {
  check(
    Array.isArray(shape) && shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0),
    "BAD_SHAPE",
    where,
    () => `a shape must be an array of integers >= 0, got ${show(shape)}.`,
    "Pass for example [2, 3].",
  );
  check(
    Number.isSafeInteger(sizeOf(shape)),
    "BAD_SHAPE",
    where,
    () => `a shape must hold fewer than 2^53 elements, got ${showShape(shape)}.`,
    "Check the order of arguments.",
  );
}

/** Strides of a dense row-major tensor, in elements. */
export function denseStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis]!;
  }
  return strides;
}

/** numpy's broadcasting: shapes are aligned at the end, an extent of 1 stretches. */
export function broadcastShapes(where: string, shapes: readonly Shape[]): Shape {
  let result = shapes[0] ?? [];
  for (const shape of shapes) if (!sameShape(shape, result)) result = broadcastTwo(where, result, shape, shapes);
  return result;
}

function broadcastTwo(where: string, a: Shape, b: Shape, shapes: readonly Shape[]): Shape {
  const [long, short] = a.length < b.length ? [b, a] : [a, b];
  const missing = long.length - short.length;
  const result = [...long];
  for (let axis = missing; axis < long.length; axis++) {
    const extent = short[axis - missing]!;
    check(
      extent === 1 || result[axis] === 1 || result[axis] === extent,
      "BAD_SHAPE",
      where,
      () => `shapes must broadcast, got ${shapes.map(showShape).join(" and ")}.`,
      "Aligned at the end, extents must be equal or 1.",
    );
    if (extent !== 1) result[axis] = extent;
  }
  return result;
}

/** Strides that stretch a dense tensor over `target`: 0 along stretched axes. */
export function broadcastStrides(shape: Shape, target: Shape): number[] {
  const missing = target.length - shape.length;
  const strides = new Array<number>(target.length).fill(0);
  let stride = 1;
  for (let axis = target.length - 1; axis >= missing; axis--) {
    const extent = shape[axis - missing]!;
    if (extent !== 1) strides[axis] = stride;
    stride *= extent;
  }
  return strides;
}

/** An axis counted from the front, where a shape of [] takes 0 and -1 for the axis of its one element, as in PyTorch. @throws OptError BAD_ARGUMENT */
export function axisOfElements(where: string, axis: number, { length }: Shape): number {
  return normalizeAxis(where, axis, Math.max(length, 1));
}

/** An axis counted from the front. @throws OptError BAD_ARGUMENT */
export function normalizeAxis(where: string, axis: number, rank: number): number {
  const isInteger = Number.isInteger(axis);
  const normal = isInteger && axis < 0 ? axis + rank : axis;
  check(
    isInteger && normal >= 0 && normal < rank,
    "BAD_ARGUMENT",
    where,
    () =>
      rank === 0
        ? `a tensor of shape [] has no axes, got ${show(axis)}.`
        : `axis must be an integer from ${-rank} to ${rank - 1}, got ${show(axis)}.`,
    rank === 0 ? "Leave the axis out, or use reshape([1])." : "Negative axes count from the end.",
  );
  return normal;
}
