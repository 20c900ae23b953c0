// Bindings of a launch: each slice is inside of its range, at the byte that is told, and no two ranges show the same byte.
import fc from "fast-check";
import { expect, it } from "vitest";
import { ALIGNMENT, Allocator } from "./allocator";
import { findBindings } from "./binding-ranges";
import type { Heap, HeapMemory } from "./heaps";

const BYTES = 64 * ALIGNMENT;
const heap = (id: number, allocator: Allocator | undefined): Heap => ({
  ...{ id, bytes: BYTES, allocator, failed: false, buffer: {} as GPUBuffer },
});
const memories: HeapMemory[] = [
  { bytes: BYTES, heap: heap(0, undefined), start: 0 },
  { bytes: BYTES, heap: heap(1, undefined), start: 0 },
  { bytes: BYTES / 2, heap: heap(2, new Allocator(BYTES)), start: 8 * ALIGNMENT },
];

const drawn = fc.record({
  memory: fc.constantFrom(0, 0, 1, 2),
  from: fc.nat(700),
  length: fc.oneof(fc.nat(40), fc.nat(700)),
  unit: fc.constantFrom(1, 2, 4, 8),
});

it("ranges show every slice, and no byte twice", () => {
  fc.assert(
    fc.property(fc.array(drawn, { minLength: 1, maxLength: 6 }), (all) => {
      const slices = all.map(({ memory, from, length, unit }) => ({
        ...{ memory: memories[memory]!, byteOffset: from * unit, length },
      }));
      const units = all.map(({ unit }) => unit);
      const { ranges, rangeOf, byteOf } = findBindings("copy", slices, units, { binding: BYTES, bindings: 9 });
      for (const [i, { memory, byteOffset, length }] of slices.entries()) {
        const range = ranges[rangeOf[i]!]!;
        expect(range.heap).toBe((memory as HeapMemory).heap);
        expect(range.start + byteOf[i]!).toBe((memory as HeapMemory).start + byteOffset);
        expect(byteOf[i]).toBeGreaterThanOrEqual(0);
        expect(byteOf[i]! + length * units[i]!).toBeLessThanOrEqual(range.bytes);
        expect(range.start % ALIGNMENT).toBe(0);
      }
      for (const [i, one] of ranges.entries())
        for (const other of ranges.slice(0, i))
          if (one.heap === other.heap)
            expect(one.start >= other.start + other.bytes || other.start >= one.start + one.bytes).toBe(true);
    }),
  );
});
