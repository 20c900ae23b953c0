import fc from "fast-check";
import { expect, it } from "vitest";
import { ArrayRanges } from "./array-ranges";

const buffers = [new ArrayBuffer(12), new ArrayBuffer(12)];
const part = fc
  .tuple(fc.constantFrom(...buffers), fc.nat(12), fc.nat(4))
  .map(([buffer, start, length]) => new Uint8Array(buffer, start, Math.min(length, 12 - start)));
const meet = (a: Uint8Array, b: Uint8Array) =>
  a.buffer === b.buffer && Math.max(a.byteOffset, b.byteOffset) < Math.min(end(a), end(b));
const end = ({ byteOffset, byteLength }: Uint8Array) => byteOffset + byteLength;

it("finds two that share a byte, and no others, in whatever order they come", () => {
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 5 }),
      part.filter(({ length }) => length > 0),
      (parts, other) => {
        const ranges = new ArrayRanges(parts);
        const [a, b] = ranges.overlapping() ?? [];
        const isThere = parts.some((one, i) => parts.some((two, k) => k > i && meet(one, two)));
        expect(a !== undefined).toBe(isThere);
        if (isThere) expect([a === b, meet(parts[a!]!, parts[b!]!)]).toEqual([false, true]);
        expect(ranges.touches(other)).toBe(parts.some((one) => meet(one, other)));
      },
    ),
    { numRuns: 500, seed: 48 },
  );
});
