import { tensor } from "@opt/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { sampleOf } from "./sample";

it("sees any other element in one turn of as many as it takes to see all", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.nat(), fc.nat(9), (size, at, first) => {
      const numbers = Float32Array.from({ length: size }, (_, i) => i + 1);
      const other = numbers.slice();
      other[at % size]! *= 2;
      const turns = Array.from({ length: Math.ceil((4 * size) / 64) + 1 }, (_, i) => first + i);
      const tellsApart = (turn: number) => sampleOf([tensor(numbers)], turn) !== sampleOf([tensor(other)], turn);
      expect(turns.some(tellsApart)).toBe(true);
      const again = numbers.slice();
      for (const turn of turns) expect(sampleOf([tensor(again)], turn)).toBe(sampleOf([tensor(numbers)], turn));
    }),
  );
});
