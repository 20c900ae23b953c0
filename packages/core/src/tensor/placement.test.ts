import { describe, expect, it } from "vitest";
import { tensor } from "../create";
import { partOf } from "../values/part-of";
import { boxAfter, elementsBefore } from "./placement";

const axis = (size: number, index: number) => ({ name: "rank", size, index, gather: () => [], scatter: () => [] });

describe("parts", () => {
  it.each([
    [10, 3, 1, [0, 4, 7, 10]],
    [10, 3, 4, [0, 4, 8, 10]],
    [17, 2, 4, [0, 12, 17]], // five groups of rows, the last one is short
    [3, 3, 4, [0, 3, 3, 3]],
    [0, 2, 4, [0, 0, 0]],
  ])("of %d rows on %d ranks begin at multiples of %d", (length, parts, multiple, cuts) => {
    const found = cuts.slice(1).map((_, part) => partOf(length, parts, part, multiple));
    expect(found).toEqual(cuts.slice(1).map((end, part) => [cuts[part], end]));
  });
});

it("elements before a part are those of the parts before it", () => {
  let before = 0;
  for (const index of [0, 1, 2]) {
    const placement = { shape: [17, 3], cuts: [{ axis: axis(3, index), dim: 0, multiple: 4 }] };
    expect(elementsBefore(placement)).toBe(before);
    before += 3 * boxAfter(placement).size[0]!;
  }
  expect(before).toBe(51);
});

it("detach is divided as the tensor is, and what is computed is not", () => {
  const x = tensor([1, 2]);
  x.placement = { shape: [4], cuts: [{ axis: axis(2, 0), dim: 0 }] };
  expect([x.detach().placement, x.mul(2).placement]).toEqual([x.placement, null]);
});

describe("what cuts leave", () => {
  const at = (outer: number, inner: number) => ({
    shape: [3, 22],
    cuts: [
      { axis: axis(2, outer), dim: 1, multiple: 4 },
      { axis: axis(2, inner), dim: 1, multiple: 4 },
    ],
  });

  it("is nested, and begins at multiples", () => {
    const boxes = [at(0, 0), at(0, 1), at(1, 0), at(1, 1)].map((placement) => boxAfter(placement));
    expect(boxes.map(({ offset, size }) => [offset[1], size[1]])).toEqual([
      [0, 8],
      [8, 4],
      [12, 8],
      [20, 2],
    ]);
    for (const { offset, size } of boxes) expect([offset[0], size[0]]).toEqual([0, 3]);
  });

  it("is the whole before the first cut", () =>
    expect(boxAfter(at(1, 1), 0)).toEqual({ offset: [0, 0], size: [3, 22] }));
});
