/** Shapes walked by strides. */

export interface Walk {
  readonly shape: readonly number[];
  readonly sourceStrides: readonly number[];
  readonly targetStrides: readonly number[];
}

/** How many elements from its start on a walk may touch, and how many before it (strides may be negative). */
export function reach(shape: readonly number[], strides: readonly number[]): { before: number; after: number } {
  let before = 0;
  let after = 1;
  for (let d = 0; d < shape.length; d++) {
    if (shape[d] === 0) return { before: 0, after: 0 };
    const distance = (shape[d]! - 1) * strides[d]!;
    if (distance < 0) before -= distance;
    else after += distance;
  }
  return { before, after };
}

/** Strides of consecutive elements in row-major order. */
export function denseStrides(shape: readonly number[]): number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let d = shape.length - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= shape[d]!;
  }
  return strides;
}

/** The same walk in as few dimensions as it takes, at least one: neighbours merge where both sides step through them evenly. */
export function mergeDimensions({ shape, sourceStrides, targetStrides }: Walk): Walk {
  const merged = { shape: [] as number[], sourceStrides: [] as number[], targetStrides: [] as number[] };
  shape.forEach((extent, d) => {
    if (extent === 1) return;
    const source = sourceStrides[d]!;
    const target = targetStrides[d]!;
    const last = merged.shape.length - 1;
    if (last >= 0 && merged.sourceStrides[last] === source * extent && merged.targetStrides[last] === target * extent) {
      merged.shape[last]! *= extent;
      merged.sourceStrides[last] = source;
      merged.targetStrides[last] = target;
    } else {
      merged.shape.push(extent);
      merged.sourceStrides.push(source);
      merged.targetStrides.push(target);
    }
  });
  return merged.shape.length > 0 ? merged : { shape: [1], sourceStrides: [1], targetStrides: [1] };
}
