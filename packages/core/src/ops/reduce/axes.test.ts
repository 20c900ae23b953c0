// An empty list of axes counts as not given: all are reduced, but by any, all and squeeze, as in PyTorch 2.13.
import { describe, expect, it } from "vitest";
import { all, any, squeeze, tensor } from "../../index";

const x = () =>
  tensor([
    [1, 2, 3],
    [4, 5, 9],
  ]);

describe("no axes", () => {
  it.each([
    ["sum", 24, (keep: boolean) => x().sum([], keep)],
    ["mean", 4, (keep: boolean) => x().mean([], keep)],
    ["max", 9, (keep: boolean) => x().max([], keep)],
    ["min", 1, (keep: boolean) => x().min([], keep)],
  ] as const)("of %s are all", (_, expected, reduce) => {
    expect(reduce(false).tolist()).toBe(expected);
    expect(reduce(true).tolist()).toEqual([[expected]]);
  });

  it("have the gradient of all", () => {
    const given = x();
    given.requiresGrad = true;
    given.sum([]).backward();
    expect(given.grad!.tolist()).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
  });

  it("leave each element alone in any and all", () => {
    const given = tensor([
      [0, 2],
      [0, 0],
    ]);
    for (const truth of [any, all]) {
      for (const keepDim of [false, true]) {
        expect(truth(given, [], keepDim).tolist()).toEqual([
          [false, true],
          [false, false],
        ]);
      }
    }
  });

  it("leave each axis in squeeze", () => expect(squeeze(tensor([[1, 2]]), []).shape).toEqual([1, 2]));
});
