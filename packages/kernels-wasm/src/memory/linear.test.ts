import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
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
    expect(() => memory.free(block)).toThrow(RangeError);
    expect(memory.allocate(1 << 20).address).toBe(block.address);
  });

  it("uses all that the engine grants, and says how much that was", () => {
    class Granting extends WebAssembly.Memory {
      constructor(descriptor: WebAssembly.MemoryDescriptor) {
        if (descriptor.maximum! > 5000) throw new RangeError("could not allocate memory");
        super(descriptor);
      }
    }
    vi.stubGlobal("WebAssembly", { Memory: Granting });
    const memory = new LinearMemory(shared);
    vi.unstubAllGlobals();
    expect(() => memory.allocate(2 ** 30)).toThrow(
      "1024 MiB must fit into memory, got a request with 0.000 MiB of 256 MiB in use",
    );
    const most = 2 ** 28 - 2 ** 16;
    expect(memory.allocate(most).bytes).toBe(most);
    expect(memory.reserved).toBe(2 ** 28);
    expectCode("OUT_OF_MEMORY", () => memory.allocate(1));
  });

  it("goes on with what there is when the engine rejects to grow generously, and then at all", () => {
    const memory = new LinearMemory(shared, 4096);
    const grow = vi.spyOn(memory.memory, "grow");
    const own = grow.getMockImplementation() ?? WebAssembly.Memory.prototype.grow.bind(memory.memory);
    memory.allocate(2 ** 24);
    const { reserved } = memory;
    let left = 3;
    grow.mockImplementation((pages) => {
      if (pages > left) throw new RangeError("cannot grow");
      left -= pages;
      return own(pages);
    });
    memory.allocate(reserved - 2 ** 16 - memory.used + 3 * 65_536);
    expect(memory.reserved).toBe(reserved + 3 * 65_536);
    expectCode("OUT_OF_MEMORY", () => memory.allocate(2 ** 20));
    expect(memory.used).toBe(memory.reserved - 65_536);
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
