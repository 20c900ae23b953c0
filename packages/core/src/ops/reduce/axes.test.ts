// An empty list of axes counts as not given: all are reduced, as in PyTorch 2.13.
import { describe, expect, it } from "vitest";
import { tensor } from "../../index";

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
});
