import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { LinearMemory } from "./linear";

describe.each([
  ["shared", true],
  ["not shared", false],
])("LinearMemory, %s", (_name, shared) => {
  it("keeps contents while it grows", () => {
    const memory = new LinearMemory(shared, 256);
    const first = memory.allocate(8);
    memory.write(first.address, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    const before = memory.reserved;
    const second = memory.allocate(1 << 20);
    expect(memory.reserved).toBeGreaterThan(before);
    memory.write(second.address + (1 << 20) - 1, Uint8Array.of(9));
    expect([...memory.read(first.address, 8)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect([...memory.read(second.address + (1 << 20) - 2, 2)]).toEqual([0, 9]);
  });

  it("names the request that does not fit, and stays usable", () => {
    const memory = new LinearMemory(shared, 32);
    const block = memory.allocate(1 << 20);
    expectCode("OUT_OF_MEMORY", () => memory.allocate(5 << 20));
    expect(() => memory.allocate(5 << 20)).toThrow(
      "5 MiB must fit into memory, got a request with 1 MiB of 2 MiB in use",
    );
    memory.free(block);
    expect(memory.used).toBe(0);
    expect(memory.allocate(1 << 20).address).toBe(block.address);
  });

  it("reads copies that other threads cannot change", () => {
    const memory = new LinearMemory(shared, 32);
    const { address } = memory.allocate(4);
    const copy = memory.read(address, 4);
    expect(copy.buffer).toBeInstanceOf(ArrayBuffer);
    memory.write(address, Uint8Array.of(1, 1, 1, 1));
    expect([...copy]).toEqual([0, 0, 0, 0]);
  });
});
