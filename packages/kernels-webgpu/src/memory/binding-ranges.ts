/** Finds the bindings of a launch: whole heaps, and ranges of memories that are larger than a binding may be. */
import { OptError } from "@opt/core";
import type { Slice } from "@opt/core/backend";
import { ALIGNMENT } from "./allocator";
import type { Heap, HeapMemory } from "./heaps";

/** What one binding shows of a buffer. */
export interface BindingRange {
  readonly heap: Heap;
  readonly start: number;
  readonly bytes: number;
}

export interface Bindings {
  readonly ranges: readonly BindingRange[];
  /** For each slice: which range has it, and the byte of that range where it starts. */
  readonly rangeOf: readonly number[];
  readonly byteOf: readonly number[];
}

/**
 * The bindings of some slices of a launch. `elementBytes` are theirs; negative strides may reach before a slice, so that
 * ranges are cut only where a memory is oversized.
 *
 * @throws OptError UNSUPPORTED if a slice is larger than a binding, or if there are too many of them
 */
export function findBindings(
  where: string,
  slices: readonly Slice[],
  elementBytes: readonly number[],
  limits: { readonly binding: number; readonly bindings: number },
): Bindings {
  const ranges: BindingRange[] = [];
  const rangeOf: number[] = [];
  const byteOf: number[] = [];
  slices.forEach((slice, i) => {
    const { heap, start } = slice.memory as HeapMemory;
    const byte = start + slice.byteOffset;
    let index = ranges.findIndex((range) => range.heap === heap);
    if (index < 0) {
      const bytes = heap.allocator === undefined ? 0 : heap.bytes;
      ranges.push({ heap, start: 0, bytes });
      index = ranges.length - 1;
    }
    rangeOf[i] = index;
    byteOf[i] = byte;
  });
  const ends = slices.map(({ length }, i) => byteOf[i]! + Math.max(1, length) * elementBytes[i]!);
  if (ranges.some(({ bytes }) => bytes === 0)) cutRanges(where, ranges, rangeOf, byteOf, ends, limits.binding);
  if (ranges.length > limits.bindings) {
    throw new OptError(
      "UNSUPPORTED",
      where,
      `at most ${limits.bindings} buffers can be bound, got ${ranges.length}.`,
      "Smaller tensors share buffers.",
    );
  }
  return { ranges, rangeOf, byteOf };
}

/** Gives the slices of each oversized memory as few ranges as they fit in: those that would overlap share one. */
function cutRanges(
  where: string,
  ranges: BindingRange[],
  rangeOf: number[],
  byteOf: number[],
  ends: readonly number[],
  largest: number,
): void {
  ranges.slice().forEach((whole, index) => {
    if (whole.bytes !== 0) return;
    const members = [...rangeOf.keys()].filter((i) => rangeOf[i] === index);
    members.sort((a, b) => byteOf[a]! - byteOf[b]!);
    let current = -1;
    for (const i of members) {
      const start = Math.floor(byteOf[i]! / ALIGNMENT) * ALIGNMENT;
      const end = Math.ceil(ends[i]! / ALIGNMENT) * ALIGNMENT;
      const open = current < 0 ? undefined : ranges[current]!;
      if (open !== undefined && start < open.start + open.bytes) {
        const bytes = Math.max(open.start + open.bytes, end) - open.start;
        ranges[current] = { ...open, bytes };
      } else {
        current = current < 0 ? index : ranges.length;
        ranges[current] = { heap: whole.heap, start, bytes: end - start };
      }
      rangeOf[i] = current;
    }
    for (const i of members) byteOf[i]! -= ranges[rangeOf[i]!]!.start;
  });
  for (const { bytes } of ranges) {
    if (bytes <= largest) continue;
    throw new OptError(
      "UNSUPPORTED",
      where,
      `one binding can show ${largest} bytes on this device, got a tensor of ${bytes}.`,
      "Split the tensor: only updates, dense maps and dense copies reach larger ones.",
    );
  }
}
