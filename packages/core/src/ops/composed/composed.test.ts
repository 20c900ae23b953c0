/** Options of functions that compose ops, by numbers that one can check by eye. */
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  aminmax,
  atleast2d,
  atleast3d,
  bincount,
  bucketize,
  cdist,
  countNonzero,
  cross,
  diagonal,
  diff,
  glu,
  histc,
  hstack,
  isclose,
  kthvalue,
  maskedScatter,
  median,
  movedim,
  nanmean,
  nanmedian,
  nansum,
  nanToNum,
  ones,
  parameter,
  quantile,
  repeatInterleave,
  rot90,
  scatterReduce,
  searchsorted,
  take,
  tensor,
  tensordot,
  tensorSplit,
  unbind,
  unflatten,
  vstack,
  zeros,
} from "../../index";

const matrix = tensor([
  [1, 2, 3],
  [6, 5, 4],
]);

it("median and quantile go along an axis, which stays if asked for", () => {
  expect(median(matrix, 0).tolist()).toEqual([1, 2, 3]);
  expect(median(matrix, 1, true).tolist()).toEqual([[2], [5]]);
  expect(median(matrix).tolist()).toBe(3);
  expect(quantile(matrix, 0.5, 0).tolist()).toEqual([3.5, 3.5, 3.5]);
  expect(quantile(matrix, 0.25, 1, true).tolist()).toEqual([[1.5], [4.5]]);
  expect(quantile(matrix, 1).tolist()).toBe(6);
});

it("cdist takes any norm, tensordot any count of axes, cross and glu any axis", () => {
  expect(cdist(tensor([[0, 0]]), tensor([[3, 4]]), 1).tolist()).toEqual([[7]]);
  expect(tensordot(ones([2, 3]), ones([3, 4]), 1).shape).toEqual([2, 4]);
  expect(tensordot(ones([2]), ones([3]), 0).shape).toEqual([2, 3]);
  const [a, b] = [tensor([[1], [0], [0]]), tensor([[0], [1], [0]])];
  expect(cross(a, b, 0).tolist()).toEqual([[0], [0], [1]]);
  expect(
    glu(
      tensor([
        [2, 4],
        [0, 0],
      ]),
      0,
    ).tolist(),
  ).toEqual([[1, 2]]);
});

it("parts repeat, turn and come apart along axes", () => {
  expect(repeatInterleave(tensor([1, 2]), 2).tolist()).toEqual([1, 1, 2, 2]);
  expect(repeatInterleave(matrix, 2, 0).shape).toEqual([4, 3]);
  expect(rot90(matrix, 1).tolist()).toEqual([
    [3, 4],
    [2, 5],
    [1, 6],
  ]);
  expect(rot90(matrix, 1, [1, 0]).tolist()).toEqual([
    [6, 1],
    [5, 2],
    [4, 3],
  ]);
  expect(rot90(matrix, -2, [0, 1]).tolist()).toEqual([
    [4, 5, 6],
    [3, 2, 1],
  ]);
  expect(unbind(matrix, 1).map((part) => part.tolist())).toEqual([
    [1, 6],
    [2, 5],
    [3, 4],
  ]);
});

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const i32 = (numbers: number | number[]) => tensor(numbers, { dtype: "i32" });

it("the k-th smallest, extremes and medians keep their axis if asked for", () => {
  expect(Object.values(kthvalue(matrix, 2)).map((part) => part.tolist())).toEqual([
    [2, 5],
    [1, 1],
  ]);
  expect(kthvalue(matrix, 1, 0, true).values.tolist()).toEqual([[1, 2, 3]]);
  expect(kthvalue(tensor(3), 1).indices.tolist()).toBe(0);
  expect(Object.values(aminmax(matrix, 1, true)).map((part) => part.tolist())).toEqual([
    [[1], [4]],
    [[3], [6]],
  ]);
  expect(Object.values(aminmax(matrix)).map((part) => part.tolist())).toEqual([1, 6]);
  const holes = tensor([
    [nan, 2, 1],
    [nan, nan, nan],
  ]);
  expect(nanmedian(holes, 1).tolist()).toEqual([1, nan]);
  expect(nanmedian(holes, 0, true).tolist()).toEqual([[nan, 2, 1]]);
  expect(nansum(holes, 1, true).tolist()).toEqual([[3], [0]]);
  expect(nanmean(holes, 1, true).tolist()).toEqual([[1.5], [nan]]);
  expect(countNonzero(tensor([[0, nan, 2]])).tolist()).toBe(2);
  expectCode("BAD_ARGUMENT", () => kthvalue(matrix, 4));
});

it("nanToNum takes a number for each kind, and else the ends of the dtype", () => {
  const x = tensor([nan, inf, -inf, 1]);
  expect(nanToNum(x, { nan: 5, posinf: 6, neginf: 7 }).tolist()).toEqual([5, 6, 7, 1]);
  for (const [dtype, most] of [
    ["f16", 65504],
    ["bf16", 3.3895313892515355e38],
    ["f64", Number.MAX_VALUE],
  ] as const)
    expect(nanToNum(x.to(dtype)).tolist()).toEqual([0, most, -most, 1]);
});

it("isclose has both tolerances, and takes NaN as equal if asked to", () => {
  const [a, b] = [tensor([1, 100, nan, inf, -inf]), tensor([1.05, 105, nan, inf, inf])];
  expect(isclose(a, b, { rtol: 0.06, atol: 0 }).tolist()).toEqual([true, true, false, true, false]);
  expect(isclose(a, b, { rtol: 0, atol: 0.1 }).tolist()).toEqual([true, false, false, true, false]);
  expect(isclose(a, b, { equalNan: true }).tolist()).toEqual([false, false, true, true, false]);
  expectCode("BAD_ARGUMENT", () => isclose(a, b, { rtol: -1 }));
});

it("values find their places on both sides, in rows and in one row", () => {
  const sorted = tensor([1, 3, 3, 5]);
  expect(searchsorted(sorted, tensor([[3, 0, 9]])).tolist()).toEqual([[1, 0, 4]]);
  expect(searchsorted(sorted, tensor([3, 5, nan]), { right: true }).tolist()).toEqual([3, 4, 4]);
  expect(bucketize(tensor([[3]]), sorted, { right: true }).tolist()).toEqual([[3]]);
  expect(searchsorted(zeros([0]), tensor([1])).tolist()).toEqual([0]);
  expectCode("BAD_SHAPE", () => searchsorted(zeros([2, 3]), zeros([3, 1])));
  expectCode("BAD_SHAPE", () => bucketize(matrix, matrix));
  expectCode("BAD_DTYPE", () => searchsorted(i32([1]), tensor([1])));
});

it("histc takes the range of x where none is given", () => {
  expect(histc(tensor([1, 2, 2, 4, nan]), { bins: 3, min: 1, max: 4 }).tolist()).toEqual([1, 2, 1]);
  expect(histc(tensor([0, 10, 5, 10]), { bins: 2 }).tolist()).toEqual([1, 3]);
  expect(histc(tensor([2, 2]), { bins: 4 }).tolist()).toEqual([0, 0, 2, 0]);
  expect(histc(tensor([2])).shape).toEqual([100]);
  expectCode("BAD_ARGUMENT", () => histc(matrix, { min: 1, max: 1 }));
  expectCode("BAD_DTYPE", () => histc(i32([1])));
});

it("scatterReduce leaves x's own elements out if asked to, also of integers", () => {
  const put = (reduce: "sum" | "mean" | "amax" | "amin" | "prod", includeSelf: boolean) =>
    scatterReduce(i32([1, 9, 3]), 0, i32([0, 0, 1]), i32([2, 5, -4]), reduce, { includeSelf }).tolist();
  const all = (includeSelf: boolean) =>
    (["sum", "mean", "amax", "amin", "prod"] as const).map((reduce) => put(reduce, includeSelf));
  expect(all(true)).toEqual([
    [8, 5, 3],
    [2, 2, 3],
    [5, 9, 3],
    [1, -4, 3],
    [10, -36, 3],
  ]);
  expect(all(false)).toEqual([
    [7, -4, 3],
    [3, -4, 3],
    [5, -4, 3],
    [2, -4, 3],
    [10, -4, 3],
  ]);
  expectCode("BAD_ARGUMENT", () => scatterReduce(matrix, 0, i32([0]), matrix, "max" as never));
});

it("scatterReduce shares a gradient by all that have the extreme, and by x only where it takes part", () => {
  const numbers = fc.array(fc.integer({ min: -1, max: 1 }), { minLength: 1, maxLength: 6 });
  const reduction = fc.constantFrom("amax" as const, "amin" as const);
  fc.assert(
    fc.property(numbers, numbers, fc.nat(6), fc.boolean(), reduction, (own, given, by, includeSelf, reduce) => {
      const places = given.map((_, i) => (i * by) % own.length);
      const [x, source] = [parameter(own), parameter(given)];
      const result = scatterReduce(x, 0, i32(places), source, reduce, { includeSelf });
      result.sum().backward();
      const [ofX, ofSource, extremes] = [x.grad!.tolist(), source.grad!.tolist(), result.tolist()] as number[][];
      for (const [place, value] of own.entries()) {
        const put = given.flatMap((each, i) => (places[i] === place ? [{ each, gradient: ofSource![i]! }] : []));
        const takesPart = includeSelf || put.length === 0;
        const all = [...put, ...(takesPart ? [{ each: value, gradient: ofX![place]! }] : [])];
        const count = all.filter(({ each }) => each === extremes![place]).length;
        for (const { each, gradient } of all)
          expect(gradient).toBeCloseTo(each === extremes![place] ? 1 / count : 0, 6);
        if (!takesPart) expect(ofX![place]).toBeCloseTo(0, 6);
      }
    }),
    { numRuns: 40 },
  );
});

it("pieces, diagonals and moved axes say so when they are written", () => {
  const cube = zeros([2, 3, 4]);
  const copies = [diagonal(matrix, -1), movedim(cube, 0, 1), ...tensorSplit(matrix, 2), ...unbind(matrix)];
  for (const copy of copies) expectCode("BAD_STATE", () => copy.set(zeros(copy.shape)));
  unflatten(matrix, 1, [3, 1]).set(zeros([2, 3, 1]));
  expect(matrix.tolist()).toEqual([
    [0, 0, 0],
    [0, 0, 0],
  ]);
});

it("wrong shapes, axes and dtypes of picks and axes throw", () => {
  expectCode("BAD_ARGUMENT", () => movedim(matrix, [0, 1], [0]));
  expectCode("BAD_ARGUMENT", () => diagonal(matrix, 0, 1, 1));
  expectCode("BAD_SHAPE", () => unflatten(matrix, 1, [2, 2]));
  expectCode("BAD_SHAPE", () => maskedScatter(matrix, matrix.gt(9), zeros([0])));
  expectCode("BAD_DTYPE", () => maskedScatter(matrix, matrix.gt(9), i32([1])));
  expectCode("BAD_ARGUMENT", () => take(matrix, i32([6])));
  expectCode("BAD_ARGUMENT", () => hstack([]));
  expect([vstack([tensor(1), tensor(2)]).shape, atleast2d(tensor(1)).shape, atleast3d(tensor([1])).shape]).toEqual([
    [2, 1],
    [1, 1],
    [1, 1, 1],
  ]);
  expect(diff(matrix, 5).shape).toEqual([2, 0]);
});

it("pieces, differences, counts and diagonals take any axes", () => {
  const x = tensor([
    [1, 2, 0],
    [6, 5, 4],
  ]);
  expect(tensorSplit(x, 2, 1).map((part) => part.shape)).toEqual([
    [2, 2],
    [2, 1],
  ]);
  expect(diff(x, 1, 0).tolist()).toEqual([[5, 3, 4]]);
  expect(countNonzero(x, 1).tolist()).toEqual([2, 3]);
  expect(diagonal(x, 1, 1, 0).tolist()).toEqual([6]);
  expect(diagonal(x.reshape([1, 2, 3]), 0, 2, -2).tolist()).toEqual([[1, 5]]);
});

it("bincount adds float32 weights in float32, one after the other", async () => {
  const weights = tensor([2 ** 24, 1, 1]);
  const counts = await bincount(tensor([0, 0, 0], { dtype: "i32" }), { weights });
  expect(counts.tolist()).toEqual([2 ** 24]);
});
