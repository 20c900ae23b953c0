import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ALIGNMENT, Allocator, paddedSize } from "./allocator";

describe("Allocator", () => {
  it.each([
    [0, 256],
    [1, 256],
    [256, 256],
    [257, 512],
  ])("pads %d bytes to %d", (bytes, padded) => expect(paddedSize(bytes)).toBe(padded));

  it("hands out what is free, and nothing when it is full", () => {
    const allocator = new Allocator(1024);
    expect([512, 512, 256].map((bytes) => allocator.allocate(bytes))).toEqual([0, 512, undefined]);
    allocator.free(0, 512);
    expect(allocator.allocate(256)).toBe(0);
    expect(allocator.used).toBe(768);
  });

  it("never hands out a byte twice, and is whole again when all is back", () => {
    const size = 64 * ALIGNMENT;
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9), fc.nat(99)), { maxLength: 200 }), (actions) => {
        const allocator = new Allocator(size);
        const held: { start: number; bytes: number }[] = [];
        for (const [take, blocks, which] of actions) {
          const bytes = (blocks + 1) * ALIGNMENT;
          const start = take ? allocator.allocate(bytes) : undefined;
          if (start !== undefined) {
            for (const other of held)
              expect(start >= other.start + other.bytes || start + bytes <= other.start).toBe(true);
            expect(start + bytes).toBeLessThanOrEqual(size);
            held.push({ start, bytes });
          } else if (!take && held.length > 0) {
            const [{ start: at, bytes: freed }] = held.splice(which % held.length, 1) as [(typeof held)[0]];
            allocator.free(at, freed);
          }
        }
        for (const { start, bytes } of held) allocator.free(start, bytes);
        expect(allocator.used).toBe(0);
        expect(allocator.allocate(size)).toBe(0);
      }),
    );
  });
});
