/** Finds typed arrays that overlap in their buffers. */

interface Range {
  readonly start: number;
  readonly end: number;
  readonly index: number;
}

export class ArrayRanges {
  /** In the order in which they begin, by buffer. */
  readonly #byBuffer = new Map<ArrayBufferLike, Range[]>();

  constructor(arrays: readonly ArrayBufferView[]) {
    arrays.forEach(({ buffer, byteOffset, byteLength }, index) => {
      if (byteLength === 0) return;
      const range = { start: byteOffset, end: byteOffset + byteLength, index };
      const known = this.#byBuffer.get(buffer);
      if (known === undefined) this.#byBuffer.set(buffer, [range]);
      else known.push(range);
    });
    for (const ranges of this.#byBuffer.values()) ranges.sort((a, b) => a.start - b.start);
  }

  /** The indices of two arrays that have bytes in common. */
  overlapping(): readonly [number, number] | undefined {
    for (const ranges of this.#byBuffer.values()) {
      const i = ranges.findIndex(({ start }, i) => i > 0 && start < ranges[i - 1]!.end);
      if (i > 0) return [ranges[i - 1]!.index, ranges[i]!.index];
    }
    return undefined;
  }

  /** True if another array has bytes of one of them. */
  touches({ buffer, byteOffset, byteLength }: ArrayBufferView): boolean {
    const ranges = this.#byBuffer.get(buffer) ?? [];
    return ranges.some(({ start, end }) => start < byteOffset + byteLength && byteOffset < end);
  }
}
