/** Memory is reused, aligned, given back, and does not grow. */
import { expectCode } from "@opt/testkit";
import { everyOp } from "@opt/testkit/built-rules";
import { describe, expect, it } from "vitest";
import { missingDevice } from "../testing/missing-device";
import { openCpuBackend } from "./backend";
import { loadAddon } from "./load-addon";
import { Allocator, newPages } from "./memory";

describe.skipIf(missingDevice)(`cpu memory${missingDevice ?? ""}`, () => {
  it("is aligned to cache lines, whatever its size", () => {
    const allocator = new Allocator(loadAddon());
    for (const bytes of [0, 1, 63, 64, 1000, 5_000_000]) expect(allocator.allocate(bytes).address % 64).toBe(0);
  });

  it.each([0, 1, 4096, 5_000_000])("of %d bytes for the disk begins with a huge page, and is zeros", (bytes) => {
    const addon = loadAddon();
    const pages = newPages(addon, bytes);
    expect([pages.length, addon.address(pages) % 2 ** 21]).toEqual([bytes, 0]);
    expect(pages.every((byte) => byte === 0)).toBe(true);
  });

  it.runIf(process.platform === "linux")("holds no pages beside what is used of a block", () => {
    const addon = loadAddon();
    const block = new Uint8Array(8 * 2 ** 20).fill(1); // as memory that was another's
    const address = addon.address(block);
    const begin = 2 ** 21 - (address % 2 ** 21);
    addon.useHugePages!(address, block.length, address + begin, 2 ** 22);
    expect(block.subarray(begin, begin + 2 ** 22).every((byte) => byte === 1)).toBe(true);
    const [before, after] = [block.subarray(0, begin), block.subarray(begin + 2 ** 22)];
    for (const part of [before, after]) expect(part.filter((byte) => byte === 1).length).toBeLessThan(2 * 4096);
  });

  it("is taken again for the next allocation of its size", () => {
    const allocator = new Allocator(loadAddon());
    const first = allocator.allocate(1000);
    allocator.free(first);
    allocator.free(first); // twice is once
    expect(allocator.allocate(1000).address).toBe(first.address);
    expect(allocator.allocate(1000).address).not.toBe(first.address);
  });

  it("goes back to the system when the device closes", () => {
    const allocator = new Allocator(loadAddon());
    const memory = allocator.allocate(1000);
    allocator.free(memory);
    allocator.clear();
    expect(memory.view.buffer.byteLength).toBe(0);
    expectCode("DISPOSED", () => memory.byteView(0, 1));
  });

  it("of the caller stays the caller's", () => {
    const allocator = new Allocator(loadAddon());
    const array = Float32Array.of(1, 2, 3);
    allocator.free(allocator.wrap(array));
    allocator.clear();
    expect([...array]).toEqual([1, 2, 3]);
  });

  it("of tiny arrays stays where it is when garbage is collected", () => {
    const backend = openCpuBackend({ threads: 1 });
    const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
    const arrays = everyOp.buffers.map(() => Float32Array.of(1, 2, 3));
    const slices = arrays.map((array) => ({ memory: backend.wrap!(array), byteOffset: 0, length: 3 }));
    for (let i = 0; i < 200; i++) new Float32Array(1e5).fill(i); // moves what can be moved
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars: [0.5, 10] });
    expect(arrays[2]![0]).not.toBe(1);
  });
});
