/** Hands out ranges of one buffer: first fit over a list of free ranges that is sorted and merged. */

/** What WebGPU asks of the offsets of bindings, and so of ranges of large memories. */
export const ALIGNMENT = 256;

/** Rounded up to the alignment, and never nothing. */
export function paddedSize(bytes: number): number {
  return Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
}

interface Range {
  start: number;
  end: number;
}

export class Allocator {
  readonly #free: Range[];
  #used = 0;

  constructor(readonly size: number) {
    this.#free = [{ start: 0, end: size }];
  }

  /** Bytes handed out. */
  get used(): number {
    return this.#used;
  }

  /** The offset of a range of `bytes` (a padded size), or undefined if none is free. */
  allocate(bytes: number): number | undefined {
    const at = this.#free.findIndex(({ start, end }) => end - start >= bytes);
    if (at < 0) return undefined;
    const range = this.#free[at]!;
    const { start } = range;
    range.start += bytes;
    if (range.start === range.end) this.#free.splice(at, 1);
    this.#used += bytes;
    return start;
  }

  free(start: number, bytes: number): void {
    const end = start + bytes;
    const at = this.#firstAfter(start);
    const before = this.#free[at - 1];
    const after = this.#free[at];
    const joinsBefore = before?.end === start;
    const joinsAfter = after?.start === end;
    if (joinsBefore && joinsAfter) {
      before.end = after.end;
      this.#free.splice(at, 1);
    } else if (joinsBefore) before.end = end;
    else if (joinsAfter) after.start = start;
    else this.#free.splice(at, 0, { start, end });
    this.#used -= bytes;
  }

  /** Position of the first free range that starts after `offset`. */
  #firstAfter(offset: number): number {
    let low = 0;
    let high = this.#free.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#free[middle]!.start > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
