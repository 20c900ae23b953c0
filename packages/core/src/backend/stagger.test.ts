import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { staggeredBytes, staggeredStart } from "./stagger";

const PAGE = 4096;
const LINE = 64;
/** How far apart two addresses are in a cache's first level. */
const apart = (a: number, b: number) => {
  const distance = Math.abs(a - b) % PAGE;
  return Math.min(distance, PAGE - distance);
};

describe("large arrays of one size, one behind the other", () => {
  it("begin four cache lines apart at least, up to sixteen of them", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2 ** 8, max: 2 ** 21 }), (units) => {
        const bytes = units * 256;
        const room = staggeredBytes(bytes);
        expect(room).toBeGreaterThanOrEqual(bytes);
        expect(room - bytes).toBeLessThan(Math.max(PAGE, bytes / 15));
        expect(room % 256).toBe(0);
        for (let i = 0; i < 16; i++)
          for (let k = 0; k < i; k++) expect(apart(i * room, k * room)).toBeGreaterThanOrEqual(4 * LINE);
      }),
    );
  });

  it("begin twelve lines apart, up to five of them: a step of AMSGrad", () => {
    const room = staggeredBytes(2 ** 27);
    for (let i = 0; i < 5; i++)
      for (let k = 0; k < i; k++) expect(apart(i * room, k * room)).toBeGreaterThanOrEqual(12 * LINE);
  });
});

it("small arrays take no more than they need", () => expect(staggeredBytes(2 ** 16 - 256)).toBe(2 ** 16 - 256));

it("blocks with pages of their own begin apart too, within a page", () => {
  const starts = Array.from({ length: 16 }, (_, i) => staggeredStart(i));
  expect(new Set(starts).size).toBe(16);
  expect(Math.max(...starts)).toBe(PAGE - 256);
});
