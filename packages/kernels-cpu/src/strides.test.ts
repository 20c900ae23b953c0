import { describe, expect, it } from "vitest";
import { denseStrides, mergeDimensions, reach } from "./strides";

describe("reach", () => {
  it.each([
    [[3, 4], [4, 1], { before: 0, after: 12 }],
    [[3, 4], [0, 1], { before: 0, after: 4 }],
    [[5], [-2], { before: 8, after: 1 }],
    [[0, 4], [4, 1], { before: 0, after: 0 }],
  ])("of %j by %j", (shape, strides, expected) => {
    expect(reach(shape, strides)).toEqual(expected);
  });
});

it("denseStrides counts elements in row-major order", () => {
  expect(denseStrides([3, 1, 4])).toEqual([4, 4, 1]);
});

describe("mergeDimensions", () => {
  it.each([
    [
      { shape: [2, 3, 4], sourceStrides: [12, 4, 1], targetStrides: [12, 4, 1] },
      { shape: [24], sourceStrides: [1], targetStrides: [1] },
    ],
    [
      { shape: [3, 4], sourceStrides: [1, 3], targetStrides: [4, 1] },
      { shape: [3, 4], sourceStrides: [1, 3], targetStrides: [4, 1] },
    ],
    [
      { shape: [1, 5, 1], sourceStrides: [9, 2, 7], targetStrides: [1, 1, 1] },
      { shape: [5], sourceStrides: [2], targetStrides: [1] },
    ],
    [
      { shape: [1, 1], sourceStrides: [9, 2], targetStrides: [1, 1] },
      { shape: [1], sourceStrides: [1], targetStrides: [1] },
    ],
  ])("of %j", (walk, expected) => {
    expect(mergeDimensions(walk)).toEqual(expected);
  });
});
