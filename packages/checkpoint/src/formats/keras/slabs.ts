/** A block of consecutive elements of a row-major tensor that is a box too. */
export interface Slab {
  /** Index of its first element in the whole. */
  readonly first: number;
  readonly count: number;
  readonly ranges: [number, number][];
}

/** Cuts elements [first, end) into blocks of consecutive whole rows, at most `most` elements each where a row allows it. */
export function* slabs(shape: readonly number[], first: number, end: number, most: number): Generator<Slab> {
  if (first >= end) return;
  const [length = 1, ...inner] = shape;
  const row = inner.reduce((product, n) => product * n, 1);
  if (inner.length > 0 && row > most) {
    for (let index = Math.floor(first / row); index * row < end; index++) {
      const start = index * row;
      for (const slab of slabs(inner, Math.max(first - start, 0), Math.min(end - start, row), most)) {
        yield { ...slab, first: slab.first + start, ranges: [[index, index + 1], ...slab.ranges] };
      }
    }
    return;
  }
  const rows = Math.max(1, Math.floor(most / row));
  for (let index = Math.floor(first / row); index * row < end; index += rows) {
    const stop = Math.min(index + rows, Math.ceil(end / row), length);
    const whole = inner.map((n): [number, number] => [0, n]);
    const ranges: [number, number][] = shape.length === 0 ? [] : [[index, stop], ...whole];
    yield { first: index * row, count: (stop - index) * row, ranges };
  }
}
