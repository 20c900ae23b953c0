/** Shapes walked by strides. */

export interface CopyWalk {
  readonly shape: readonly number[];
  readonly sourceStrides: readonly number[];
  readonly targetStrides: readonly number[];
}

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** How many elements from its start on a walk may touch, and how many before it (strides may be negative). */
export function reach(shape: readonly number[], strides: readonly number[]): { before: number; after: number } {
  if (shape.includes(0)) return { before: 0, after: 0 };
  const distances = shape.map((extent, axis) => (extent - 1) * strides[axis]!);
  const total = (kept: (distance: number) => boolean) =>
    distances.filter(kept).reduce((sum, distance) => sum + Math.abs(distance), 0);
  return { before: total((distance) => distance < 0), after: 1 + total((distance) => distance > 0) };
}

/** Are these the strides of consecutive elements in row-major order? */
export function isDense(shape: readonly number[], strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] !== 1 && strides[axis] !== expected) return false;
    expected *= shape[axis]!;
  }
  return true;
}

/** The same walk in as few dimensions as it takes: none where both sides are dense. */
export function shorten({ shape, sourceStrides, targetStrides }: CopyWalk): CopyWalk {
  const axes = shape.map((_, axis) => axis).filter((axis) => shape[axis] !== 1);
  const merged: { extent: number; source: number; target: number }[] = [];
  for (const axis of axes) {
    const [extent, source, target] = [shape[axis]!, sourceStrides[axis]!, targetStrides[axis]!];
    const outer = merged.at(-1);
    if (outer !== undefined && outer.source === source * extent && outer.target === target * extent) {
      merged[merged.length - 1] = { extent: outer.extent * extent, source, target };
    } else merged.push({ extent, source, target });
  }
  const [only, ...more] = merged;
  const dense = only === undefined || (more.length === 0 && only.source === 1 && only.target === 1);
  const kept = dense ? [] : merged;
  return {
    shape: kept.map(({ extent }) => extent),
    sourceStrides: kept.map(({ source }) => source),
    targetStrides: kept.map(({ target }) => target),
  };
}
