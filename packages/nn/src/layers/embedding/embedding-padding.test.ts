// As PyTorch's padding_idx: a row of zeros at first, whose gradient is 0.
import { Generator, type RowSparse, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Embedding } from "../../index";

const made = (paddingIdx: number | null) => new Embedding(3, 2, { paddingIdx, generator: new Generator(4) });
const indices = () =>
  tensor(
    [
      [0, 2],
      [2, 1],
    ],
    { dtype: "i32" },
  );
const rows = (x: { tolist(): unknown }) => x.tolist() as number[][];

describe("paddingIdx", () => {
  it.each([
    [0, 0],
    [2, 2],
    [-1, 2],
    [-3, 0],
  ])("%i is the row %i: zeros at first, the others as without it", (given, row) => {
    const layer = made(given);
    expect(layer.paddingIdx).toBe(row);
    expect(rows(layer.weight)).toEqual(rows(made(null).weight).map((values, i) => (i === row ? [0, 0] : values)));
  });

  it("leaves its row without a gradient", () => {
    const layer = made(2);
    layer.weight.set([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const result = layer.forward(indices());
    expect(result.tolist()).toEqual([
      [
        [1, 2],
        [5, 6],
      ],
      [
        [5, 6],
        [3, 4],
      ],
    ]);
    result.mul(result).sum().backward();
    expect(rows(layer.weight.grad!)).toEqual([
      [2, 4],
      [6, 8],
      [0, 0],
    ]);
  });

  it("is in what a model prints", () => expect(String(made(-1))).toBe("Embedding(3, 2, paddingIdx=2)"));

  it.each([3, -4, 0.5, "0"])("%s is rejected", (paddingIdx) =>
    expectCode("BAD_ARGUMENT", () => new Embedding(3, 2, { paddingIdx: paddingIdx as number })),
  );

  it("is left out of a sparse gradient", () => {
    const layer = new Embedding(3, 2, { paddingIdx: 2, sparse: true });
    layer.forward(indices()).sum().backward();
    const gradient = (layer.weight.grad as RowSparse).coalesce();
    expect(gradient.indices.tolist()).toEqual([0, 1]);
    expect(rows(gradient.toDense())).toEqual([
      [1, 1],
      [1, 1],
      [0, 0],
    ]);
  });
});
