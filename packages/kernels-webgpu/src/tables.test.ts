import fc from "fast-check";
import { expect, it } from "vitest";
import { Tables } from "./tables";

it("a list is where its launch looks for it, however many others come, and few are kept", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(1), fc.nat(11)), { minLength: 30, maxLength: 60 }), (asked) => {
      const held = new Map<object, Uint8Array>();
      const tables = new Tables({
        allocate: (bytes) => ({ bytes }),
        write: (memory, _, bytes) => void held.set(memory, bytes.slice()),
        free: (memory) => void held.delete(memory),
      });
      const owners = [{}, {}];
      for (const [owner, number] of asked) {
        const words = Uint32Array.of(number, owner);
        const { memory, length } = tables.find(owners[owner]!, words);
        expect([length, new Uint32Array(held.get(memory)!.buffer)]).toEqual([2, words]);
      }
      expect(held.size).toBeLessThanOrEqual(16);
    }),
  );
});
