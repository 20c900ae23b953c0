import { describe, expect, it } from "vitest";
import {
  type Box,
  byPlace,
  describeBox,
  elementCount,
  elementsIn,
  elementsShared,
  fits,
  intersect,
  sameBox,
  subtract,
} from "./box";

const box = (offset: number[], size: number[]): Box => ({ offset, size });
const middle = box([2, 3], [4, 5]);

describe("two boxes", () => {
  it.each<[string, Box, Box | undefined]>([
    ["one in the other", box([3, 4], [1, 2]), box([3, 4], [1, 2])],
    ["one at a corner of the other", box([0, 0], [3, 4]), box([2, 3], [1, 1])],
    ["side by side", box([6, 3], [2, 5]), undefined],
    ["apart in both dimensions", box([7, 9], [2, 2]), undefined],
    ["one of no element inside of the other", box([3, 4], [0, 2]), undefined],
  ])("%s", (_, other, shared) => {
    expect(intersect(middle, other)).toEqual(shared);
    expect(intersect(other, middle)).toEqual(shared);
    expect(elementsShared(middle, other)).toBe(shared ? elementsIn(shared) : 0);
    const rest = subtract(middle, [other]);
    expect(rest.reduce((sum, piece) => sum + elementsIn(piece), 0)).toBe(20 - elementsShared(middle, other));
    for (const piece of rest)
      expect([elementsShared(piece, other), elementsShared(piece, middle)]).toEqual([0, elementsIn(piece)]);
  });

  it("are the same only in every offset and every size", () => {
    expect(sameBox(middle, box([2, 3], [4, 5]))).toBe(true);
    for (const other of [box([1, 3], [4, 5]), box([2, 2], [4, 5]), box([2, 3], [3, 5]), box([2, 3], [4, 4])])
      expect(sameBox(middle, other)).toBe(false);
  });

  it("are ordered by rows, then columns", () => {
    const places = [box([1, 0], [1, 1]), box([0, 2], [1, 1]), box([0, 1], [1, 1])];
    expect(places.sort(byPlace).map(({ offset }) => offset)).toEqual([
      [0, 1],
      [0, 2],
      [1, 0],
    ]);
    expect(byPlace(middle, box([2, 3], [1, 1]))).toBe(0);
  });
});

it("a box without two holes is what neither holds, in disjoint pieces", () => {
  const rest = subtract(box([0, 0], [4, 4]), [box([1, 1], [2, 2]), box([0, 3], [4, 9])]);
  expect(rest).toEqual([box([0, 0], [1, 3]), box([3, 0], [1, 3]), box([1, 0], [2, 1])]);
});

it.each<[Box, boolean]>([
  [box([0, 0], [6, 8]), true],
  [box([6, 8], [0, 0]), true],
  [box([1, 0], [6, 8]), false],
  [box([0, 0], [6, 9]), false],
  [box([-1, 0], [2, 2]), false],
  [box([2, 0], [-1, 2]), false],
  [box([0.5, 0], [1, 1]), false],
  [box([0, 0], [1, Number.NaN]), false],
  [box([0], [1, 1]), false],
  [box([0, 0], [1]), false],
  [box([0, 0, 0], [1, 1, 1]), false],
])("%j lies in [6, 8]: %s", (one, is) => expect(fits(one, [6, 8])).toBe(is));

it("reads as Python's slices", () => expect(describeBox(middle)).toBe("[2:6, 3:8]"));

it("counts elements while the count is exact", () => {
  expect([elementCount([]), elementCount([3, 4]), elementCount([2 ** 30, 2 ** 30])]).toEqual([1, 12, undefined]);
});
