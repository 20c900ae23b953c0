import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ALIGNMENT, Allocator } from "./allocator";

const START = 1024;
const upTo = (limit: number) => new Allocator(START, (end) => (end <= limit ? end : undefined));

describe("Allocator", () => {
  it("never hands out overlapping or unaligned blocks, and joins all of them again", () => {
    const size = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 100_000 }));
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ allocate: size }) },
      { weight: 2, arbitrary: fc.record({ free: fc.nat() }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const allocator = upTo(2 ** 24);
        const live: { address: number; bytes: number }[] = [];
        for (const action of steps) {
          if ("allocate" in action) {
            const address = allocator.allocate(action.allocate) as number;
            const end = address + Math.max(action.allocate, 1);
            expect(address % ALIGNMENT).toBe(0);
            expect(live.every((other) => end <= other.address || other.address + other.bytes <= address)).toBe(true);
            live.push({ address, bytes: Math.max(action.allocate, 1) });
          } else if (live.length > 0) {
            const [block] = live.splice(action.free % live.length, 1);
            allocator.free(block!.address, block!.bytes);
          }
        }
        for (const { address, bytes } of live) allocator.free(address, bytes);
        expect(allocator.used).toBe(0);
        expect(allocator.allocate(allocator.end - START)).toBe(START);
      }),
      { numRuns: 200, seed: 7 },
    );
  });

  it("takes a block of exactly the size before growing", () => {
    const allocator = upTo(2 ** 24);
    const sizes = [64 * 1000, 64 * 1001, 64 * 1023];
    const blocks = sizes.flatMap((size) => [allocator.allocate(size)!, allocator.allocate(64)!]);
    const { end } = allocator;
    for (const i of [0, 1, 2]) allocator.free(blocks[2 * i]!, sizes[i]!);
    for (const size of [...sizes].reverse()) allocator.allocate(size);
    expect(allocator.end).toBe(end);
  });

  it("staggers large blocks of a size, and gives all of them back", () => {
    const allocator = upTo(2 ** 30);
    const bytes = 2 ** 22;
    const addresses = Array.from({ length: 16 }, () => allocator.allocate(bytes)!);
    expect(new Set(addresses.map((address) => address % 4096)).size).toBe(16);
    for (const address of addresses) allocator.free(address, bytes);
    expect(allocator.used).toBe(0);
  });

  it("gives a large block the last of the room, and takes it back", () => {
    const bytes = 2 ** 20;
    const allocator = upTo(START + bytes);
    for (let i = 0; i < 2; i++) {
      expect(allocator.allocate(bytes)).toBe(START);
      expect(allocator.used).toBe(bytes);
      allocator.free(START, bytes);
      expect(allocator.used).toBe(0);
    }
  });

  it("says when there is no room, and goes on with what there is", () => {
    const allocator = upTo(START + 640);
    expect(allocator.allocate(641)).toBeUndefined();
    expect(allocator.allocate(512)).toBe(START);
    expect(allocator.allocate(256)).toBeUndefined();
    expect(allocator.allocate(128)).toBe(START + 512);
  });

  it("hands out a small block again as it was, and joins it with its neighbours before growing", () => {
    const allocator = upTo(START + 384);
    const [a, b, c] = [128, 100, 128].map((bytes) => allocator.allocate(bytes)!) as [number, number, number];
    allocator.free(b, 100);
    expect(allocator.allocate(65)).toBe(b);
    for (const address of [a, b, c]) allocator.free(address, 128);
    expect(allocator.used).toBe(0);
    expect(allocator.allocate(384)).toBe(START);
  });

  it("does not grow over 100,000 steps of the same training", () => {
    const allocator = upTo(2 ** 30);
    let state = 1;
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return (state >>> 8) % below;
    };
    const allocated = (bytes: number) => ({ address: allocator.allocate(bytes)!, bytes });
    const free = ({ address, bytes }: ReturnType<typeof allocated>) => allocator.free(address, bytes);
    const parameters = Array.from({ length: 40 }, () => allocated(4 * (1 + random(300_000))));
    let settled = 0;
    for (let step = 0; step < 100_000; step++) {
      const rows = 1 + random(128); // batches vary, so sizes do
      const temporaries = Array.from({ length: 6 }, (_, layer) => allocated(4 * rows * (10 + 97 * layer)));
      for (const k of [3, 0, 5, 1, 4, 2]) free(temporaries[k]!);
      if (step === 1000) settled = allocator.end;
    }
    expect(allocator.end).toBe(settled);
    for (const block of parameters) free(block);
    expect(allocator.used).toBe(0);
  });
});
