/** Memory: bytes go in and come out, in the order of the calls. */
import type { Slice } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import type { ContractContext } from "./context";
import "../numbers/matcher";

export function memoryContract(context: ContractContext): void {
  const count = (size: number) => Uint8Array.from({ length: size }, (_, i) => (i * 7 + 3) & 0xff);

  describe("memory", () => {
    it.each([0, 1, 3, 5, 17, 1027, 66_003])("holds %d bytes", async (size) => {
      const { backend } = context;
      const memory = backend.allocate(size);
      expect(memory.bytes).toBeGreaterThanOrEqual(size);
      const bytes = count(size);
      backend.write(memory, 0, bytes);
      expect(await backend.read(memory, 0, size)).toAgreeWith(bytes);
      if (backend.readSync) expect(backend.readSync(memory, 0, size)).toAgreeWith(bytes);
      if (backend.hostView) expect(backend.hostView(memory, 0, size)).toAgreeWith(bytes);
      backend.free(memory);
    });

    it("is reserved as a new object, which becomes what is allocated for it", async (test) => {
      const { backend } = context;
      if (backend.reserve === undefined) return test.skip("it reserves nothing");
      const reserved = [backend.reserve(17), backend.reserve(17)] as const;
      expect(reserved.map(({ bytes }) => bytes)).toEqual([17, 17]);
      for (const each of reserved) Object.assign(each, backend.allocate(17));
      backend.write(reserved[0], 0, count(17));
      backend.write(reserved[1], 0, new Uint8Array(17));
      expect(await backend.read(reserved[0], 0, 17)).toAgreeWith(count(17));
      for (const each of reserved) backend.free(each);
    });

    it("is a new object each time, also of bytes that were freed", () => {
      const { backend } = context;
      const before = backend.allocate(64);
      backend.free(before);
      const after = backend.allocate(64);
      expect(after).not.toBe(before);
      backend.free(after);
    });

    it("writes and reads ranges at any byte", async () => {
      const { backend } = context;
      const memory = backend.allocate(64);
      backend.write(memory, 0, new Uint8Array(64));
      backend.write(memory, 13, count(7));
      const expected = new Uint8Array(64);
      expected.set(count(7), 13);
      expect(await backend.read(memory, 0, 64)).toAgreeWith(expected);
      expect(await backend.read(memory, 14, 5)).toAgreeWith(expected.slice(14, 19));
      backend.free(memory);
    });

    it("lets the caller reuse what it wrote from and what it read", async () => {
      const { backend } = context;
      const memory = backend.allocate(16);
      const bytes = count(16);
      backend.write(memory, 0, bytes);
      bytes.fill(0);
      const first = await backend.read(memory, 0, 16);
      expect(first).toAgreeWith(count(16));
      first.fill(0);
      expect(await backend.read(memory, 0, 16)).toAgreeWith(count(16));
      backend.free(memory);
    });

    it.each([
      [1024, "at once"],
      [1024, "at the end"],
      [20_000, "at the end"],
    ])("keeps the order of writes and launches of %d, reads %s, and frees after a launch", async (elements, when) => {
      const { backend } = context;
      const memories = Array.from({ length: 6 }, () => backend.allocate(elements * 4));
      const [source, ...targets] = memories.map((memory): Slice => ({ memory, byteOffset: 0, length: elements }));
      const kernel = context.kernel({ kind: "copy", from: "i32", to: "i32" });
      const strides = { shape: [elements], sourceStrides: [1], targetStrides: [1] };
      const results: Promise<Uint8Array>[] = [];
      const isLate = when === "at the end";
      for (let round = 0; round < 5; round++) {
        const numbers = Int32Array.from({ length: elements }, (_, i) => i + round * 1000);
        backend.write(source!.memory, 0, new Uint8Array(numbers.buffer));
        const target = targets[isLate ? round : 0]!;
        backend.launch({ kind: "copy", kernel, source: source!, target, ...strides });
        if (!isLate) results.push(backend.read(target.memory, 0, 4));
      }
      backend.free(source!.memory);
      if (isLate) results.push(...targets.map(({ memory }) => backend.read(memory, 0, 4)));
      const seen = (await Promise.all(results)).map((bytes) => new Int32Array(bytes.buffer, bytes.byteOffset, 1)[0]);
      expect(seen).toEqual([0, 1000, 2000, 3000, 4000]);
      await backend.sync();
      for (const { memory } of targets) backend.free(memory);
    });

    it("shares the caller's array where it says so", async () => {
      const { backend } = context;
      if (backend.wrap === undefined) return expect("wrap" in backend && backend.wrap).toBeFalsy();
      const array = Int32Array.of(0, 1, 2, 3, 4, 5).subarray(1, 5);
      const memory = backend.wrap(array);
      backend.write(memory, 4, new Uint8Array(Int32Array.of(42).buffer));
      await backend.sync();
      expect([...array]).toEqual([1, 42, 3, 4]);
      array[2] = 7;
      const bytes = await backend.read(memory, 8, 4);
      expect([...bytes]).toEqual([7, 0, 0, 0]);
      backend.free(memory);
    });
  });
}
