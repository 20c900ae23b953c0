import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boxesOfRange } from "./boxes";
import { rangesOf } from "./ranges";

/** The row-major numbers of the elements of a box. */
function elements(shape: readonly number[], offset: readonly number[], size: readonly number[]): number[] {
  const [first, ...rest] = shape;
  if (first === undefined) return [0];
  const stride = rest.reduce((a, b) => a * b, 1);
  const inner = elements(rest, offset.slice(1), size.slice(1));
  return Array.from({ length: size[0]! }, (_, i) => inner.map((each) => (offset[0]! + i) * stride + each)).flat();
}

const shapes = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 });

describe("a range as boxes", () => {
  it("has the elements of the range, in their order", () => {
    fc.assert(
      fc.property(shapes, fc.nat(700), fc.nat(700), (shape, a, b) => {
        const count = shape.reduce((x, y) => x * y, 1);
        const [begin, end] = [Math.min(a, b, count), Math.min(Math.max(a, b), count)];
        const found = boxesOfRange(shape, begin, end).flatMap(({ offset, size }) => elements(shape, offset, size));
        expect(found).toEqual(Array.from({ length: end - begin }, (_, i) => begin + i));
      }),
    );
  });
});

describe("ranges of ranks", () => {
  it("cover each parameter once, and differ by no more than a block for each parameter", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(4000), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 9 }),
        (sizes, ranks) => {
          const all = rangesOf(sizes, ranks);
          const totals = new Array<number>(ranks).fill(0);
          for (const [i, ranges] of all.entries()) {
            let at = 0;
            for (const [rank, { begin, end }] of ranges.entries()) {
              if (end === begin) continue;
              expect(begin).toBe(at);
              expect(begin % 256).toBe(0);
              at = end;
              totals[rank]! += end - begin;
            }
            expect(at).toBe(sizes[i]);
          }
          expect(Math.max(...totals) - Math.min(...totals)).toBeLessThanOrEqual(256 * (sizes.length + 1));
        },
      ),
    );
  });
});
