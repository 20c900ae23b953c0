import fc from "fast-check";
import { expect, it } from "vitest";
import { slabs } from "./slabs";

it("cover any range once, in order, each a box of consecutive elements that is as small as its rows allow", () => {
  const shapes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 });
  fc.assert(
    fc.property(shapes, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 30 }), (shape, a, b, most) => {
      const size = shape.reduce((product, length) => product * length, 1);
      const [first, end] = [a % (size + 1), b % (size + 1)].sort((x, y) => x - y) as [number, number];
      const all = [...slabs(shape, first, end, most)];
      expect(all.length > 0).toBe(first < end);
      if (first === end) return;
      /** Where an element is in the whole. */
      const place = (at: readonly number[]) => shape.reduce((sum, length, d) => sum * length + at[d]!, 0);
      for (const { first: begin, count, ranges } of all) {
        expect(count).toBeLessThanOrEqual(most);
        expect(ranges).toHaveLength(shape.length);
        expect(ranges.every(([start, stop], d) => 0 <= start && start < stop && stop <= shape[d]!)).toBe(true);
        expect(place(ranges.map(([start]) => start))).toBe(begin);
        expect(place(ranges.map(([, stop]) => stop - 1))).toBe(begin + count - 1);
        expect(ranges.reduce((product, [start, stop]) => product * (stop - start), 1)).toBe(count);
      }
      for (const [i, { first: begin, count }] of all.entries())
        if (i + 1 < all.length) expect(all[i + 1]!.first).toBe(begin + count);
      const last = all.at(-1)!;
      expect(all[0]!.first).toBeLessThanOrEqual(first);
      expect(last.first + last.count).toBeGreaterThanOrEqual(end);
      // What lies before and after is less than a row.
      expect([first - all[0]!.first < most, last.first + last.count - end < most]).toEqual([true, true]);
    }),
  );
});
