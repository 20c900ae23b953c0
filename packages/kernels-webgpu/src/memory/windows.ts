/** Finds the bindings of a launch: whole heaps, and windows into memories that are larger than a binding may be. */
import { OptError } from "@opt/core";
import type { Slice } from "@opt/core/backend";
import { ALIGNMENT } from "./allocator";
import type { Heap, HeapMemory } from "./heaps";

/** What one binding shows of a buffer. */
export interface Window {
  readonly heap: Heap;
  readonly start: number;
  readonly bytes: number;
}

export interface Bindings {
  readonly windows: readonly Window[];
  /** For each slice: which window shows it, and the byte of that window where it starts. */
  readonly windowOf: readonly number[];
  readonly byteOf: readonly number[];
}

/**
 * The bindings of some slices of a launch. `elementBytes` are theirs; negative strides may reach before a slice, so that
 * windows are cut only where a memory is oversized.
 *
 * @throws OptError UNSUPPORTED if a slice is larger than a binding, or if there are too many of them
 */
export function findBindings(
  where: string,
  slices: readonly Slice[],
  elementBytes: readonly number[],
  limits: { readonly binding: number; readonly bindings: number },
): Bindings {
  const windows: Window[] = [];
  const windowOf: number[] = [];
  const byteOf: number[] = [];
  slices.forEach((slice, i) => {
    const { heap, start } = slice.memory as HeapMemory;
    const byte = start + slice.byteOffset;
    let index = windows.findIndex((window) => window.heap === heap);
    if (index < 0) {
      const bytes = heap.allocator === undefined ? 0 : heap.bytes;
      windows.push({ heap, start: 0, bytes });
      index = windows.length - 1;
    }
    windowOf[i] = index;
    byteOf[i] = byte;
  });
  const ends = slices.map(({ length }, i) => byteOf[i]! + Math.max(1, length) * elementBytes[i]!);
  if (windows.some(({ bytes }) => bytes === 0)) cutWindows(where, windows, windowOf, byteOf, ends, limits.binding);
  if (windows.length > limits.bindings) {
    throw new OptError(
      "UNSUPPORTED",
      where,
      `a launch can bind ${limits.bindings} buffers on this device, got ${windows.length}.`,
      "Use smaller tensors, which share buffers.",
    );
  }
  return { windows, windowOf, byteOf };
}

/** Gives the slices of each oversized memory as few windows as they fit in: those that would overlap share one. */
function cutWindows(
  where: string,
  windows: Window[],
  windowOf: number[],
  byteOf: number[],
  ends: readonly number[],
  largest: number,
): void {
  windows.slice().forEach((whole, index) => {
    if (whole.bytes !== 0) return;
    const members = [...windowOf.keys()].filter((i) => windowOf[i] === index);
    members.sort((a, b) => byteOf[a]! - byteOf[b]!);
    let current = -1;
    for (const i of members) {
      const start = Math.floor(byteOf[i]! / ALIGNMENT) * ALIGNMENT;
      const end = Math.ceil(ends[i]! / ALIGNMENT) * ALIGNMENT;
      const open = current < 0 ? undefined : windows[current]!;
      if (open !== undefined && start < open.start + open.bytes) {
        const bytes = Math.max(open.start + open.bytes, end) - open.start;
        windows[current] = { ...open, bytes };
      } else {
        current = current < 0 ? index : windows.length;
        windows[current] = { heap: whole.heap, start, bytes: end - start };
      }
      windowOf[i] = current;
    }
    for (const i of members) byteOf[i]! -= windows[windowOf[i]!]!.start;
  });
  for (const { bytes } of windows) {
    if (bytes <= largest) continue;
    throw new OptError(
      "UNSUPPORTED",
      where,
      `one binding can show ${largest} bytes on this device, got a tensor of ${bytes}.`,
      "Split the tensor: only updates, dense maps and dense copies reach larger ones.",
    );
  }
}
