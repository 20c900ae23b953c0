/** Small blocks lie in rows, share no byte, and are given back with the last of their slab. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { loadAddon } from "./load-addon";
import { Allocator, type CpuMemory } from "./memory";

describe.skipIf(missingDevice)(`small blocks${missingDevice ?? ""}`, () => {
  it("of a size lie one behind the other, in the order of asking, whatever comes between", () => {
    const allocator = new Allocator(loadAddon());
    const blocks = Array.from({ length: 1000 }, (_, i) => {
      allocator.allocate(64 * (i % 7) + 100);
      return allocator.allocate(4000);
    });
    const steps = blocks.slice(1).map(({ address }, i) => address - blocks[i]!.address);
    expect(steps.filter((step) => step === 4032).length).toBeGreaterThan(985); // the others begin a slab
  });

  it("freed in the order of asking are asked for again where they were, last first", () => {
    const allocator = new Allocator(loadAddon());
    const addresses = () => Array.from({ length: 100 }, () => allocator.allocate(4000));
    const first = addresses();
    for (const memory of first) allocator.free(memory);
    const again = addresses().map(({ address }) => address);
    expect(again.toSorted()).toEqual(first.map(({ address }) => address).toSorted());
  });

  it("never share a byte, and keep what is in them, whoever comes and goes", () => {
    const size = fc.integer({ min: 1, max: 70_000 });
    fc.assert(
      fc.property(fc.array(fc.tuple(size, fc.nat()), { minLength: 1, maxLength: 60 }), (asked) => {
        const allocator = new Allocator(loadAddon());
        const live: { memory: CpuMemory; mark: number }[] = [];
        asked.forEach(([bytes, choice], i) => {
          const mark = (i % 255) + 1;
          const memory = allocator.allocate(bytes);
          expect(memory.address % 64).toBe(0);
          memory.byteView(0, bytes).fill(mark);
          live.push({ memory, mark });
          if (choice % 3 === 0) allocator.free(live.splice(choice % live.length, 1)[0]!.memory);
          if (choice % 11 === 0) allocator.clear();
        });
        for (const { memory, mark } of live) {
          expect(memory.byteView(0, memory.bytes).every((byte) => byte === mark)).toBe(true);
        }
      }),
      { numRuns: 100, seed: 1 },
    );
  });

  it("go back to the system with the last of their slab, where many empty ones are kept", () => {
    const allocator = new Allocator(loadAddon());
    const blocks = Array.from({ length: 2000 }, () => allocator.allocate(2 ** 16)); // 125 MiB
    for (const memory of blocks) allocator.free(memory);
    const held = new Set(blocks.map(({ view }) => view.buffer).filter((buffer) => buffer.byteLength > 0));
    const bytes = [...held].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(bytes).toBeGreaterThan(2 ** 25);
    expect(bytes).toBeLessThan(2 ** 26 + 2 ** 20);
    const [kept, other] = [allocator.allocate(2 ** 16), allocator.allocate(100)];
    allocator.clear();
    expect([kept, other].map(({ view }) => view.buffer.byteLength > 0)).toEqual([true, true]);
    expect([...held].filter((buffer) => buffer.byteLength > 0)).toEqual([kept.view.buffer]);
  });
});
