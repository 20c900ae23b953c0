import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { denseStrides } from "./shape";
import { isDense, mergeDimensions, reach } from "./strides";

/** The offsets of a walk, in its order. */
function visited(shape: readonly number[], strides: readonly number[]): number[] {
  let offsets = [0];
  shape.forEach((extent, axis) => {
    offsets = offsets.flatMap((base) => Array.from({ length: extent }, (_, i) => base + i * strides[axis]!));
  });
  return offsets;
}

/** Two operands, one of which goes on evenly along most axes. */
const walks = fc
  .array(
    fc.record({
      extent: fc.integer({ min: 1, max: 4 }),
      source: fc.integer({ min: -9, max: 9 }),
      gap: fc.constantFrom(1, 1, 1, 2),
      isEven: fc.boolean(),
    }),
    { maxLength: 5 },
  )
  .map((axes) => {
    const shape = axes.map(({ extent }) => extent);
    const target = denseStrides(axes.map(({ extent, gap }) => extent * gap));
    const source = axes.map(({ source, isEven }, axis) => (isEven ? -2 * target[axis]! : source));
    return { shape, strides: [source, target] };
  });

describe("reach", () => {
  it.each([
    [[3, 4], [4, 1], { before: 0, after: 12 }],
    [[3, 4], [0, 1], { before: 0, after: 4 }],
    [[5], [-2], { before: 8, after: 1 }],
    [[0, 4], [4, 1], { before: 0, after: 0 }],
  ])("of %j by %j", (shape, strides, expected) => {
    expect(reach(shape, strides)).toEqual(expected);
  });

  it("has the first and the last element of every walk", () => {
    fc.assert(
      fc.property(walks, ({ shape, strides }) => {
        for (const list of strides) {
          const { before, after } = reach(shape, list);
          const offsets = visited(shape, list);
          expect([0 - before, after - 1]).toEqual([Math.min(...offsets), Math.max(...offsets)]);
        }
      }),
    );
  });
});

describe("isDense", () => {
  it.each([
    [[3, 4], [4, 1], true],
    [[3, 4], [1, 3], false],
    [[3, 1, 4], [4, 9, 1], true],
    [[4], [2], false],
    [[1], [0], true],
    [[], [], true],
  ])("of %j by %j", (shape, strides, expected) => {
    expect(isDense(shape, strides)).toBe(expected);
  });
});

describe("mergeDimensions", () => {
  it.each([
    ["dense operands", [2, 3, 4], [12, 4, 1], [12, 4, 1], { shape: [24], strides: [[1], [1]] }],
    [
      "a transpose",
      [3, 4],
      [1, 3],
      [4, 1],
      {
        shape: [3, 4],
        strides: [
          [1, 3],
          [4, 1],
        ],
      },
    ],
    ["extents of 1", [1, 5, 1], [9, 2, 7], [1, 1, 1], { shape: [5], strides: [[2], [1]] }],
    ["one element", [1, 1], [9, 2], [1, 1], { shape: [1], strides: [[0], [0]] }],
    ["a scalar", [], [], [], { shape: [1], strides: [[0], [0]] }],
    ["a broadcast operand", [2, 3], [0, 0], [3, 1], { shape: [6], strides: [[0], [1]] }],
  ])("merges %s", (_, shape, source, target, expected) => {
    expect(mergeDimensions(shape, [source, target])).toEqual(expected);
  });

  it("visits the same elements in the same order, for every operand", () => {
    fc.assert(
      fc.property(walks, ({ shape, strides }) => {
        const merged = mergeDimensions(shape, strides);
        expect(merged.strides.map((list) => visited(merged.shape, list))).toEqual(
          strides.map((list) => visited(shape, list)),
        );
      }),
    );
  });

  it("leaves no neighbours that could be merged, and no extent of 1 but in the walk of one element", () => {
    fc.assert(
      fc.property(walks, ({ shape, strides }) => {
        const once = mergeDimensions(shape, strides);
        expect(mergeDimensions(once.shape, once.strides)).toEqual(once);
        if (once.shape.length > 1) expect(once.shape).not.toContain(1);
      }),
    );
  });
});
