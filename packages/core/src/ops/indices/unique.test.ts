// What the host counts: unique elements and slices, and how often numbers are there.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { allclose, bincount, equal, tensor, type Unique, unique, zeros } from "../../index";

const lists = ({ values, inverse, counts }: Unique) => [values, inverse, counts].map((part) => part.tolist());
const i32 = (numbers: number[]) => tensor(numbers, { dtype: "i32" });

it("unique sorts, and says where each came from and how often", async () => {
  const found = await unique(
    tensor([
      [3, 1],
      [1, 3],
    ]),
  );
  expect(lists(found)).toEqual([
    [1, 3],
    [
      [1, 0],
      [0, 1],
    ],
    [2, 2],
  ]);
  expect(found.inverse.dtype).toBe("i32");
  expect(lists(await unique(tensor([Number.NaN, 2, Number.NaN, -0, 0])))).toEqual([
    [-0, 2, Number.NaN, Number.NaN],
    [2, 1, 3, 0, 0],
    [2, 1, 1, 1],
  ]);
  expect(lists(await unique(zeros([0, 2])))).toEqual([[], [], []]);
  expect(lists(await unique(tensor([true, false, true])))).toEqual([
    [false, true],
    [1, 0, 1],
    [1, 2],
  ]);
});

it("unique compares slices of any axis", async () => {
  const x = tensor([
    [1, 0, 1],
    [5, 2, 5],
  ]);
  expect(lists(await unique(x, { axis: -1 }))).toEqual([
    [
      [0, 1],
      [2, 5],
    ],
    [1, 0, 1],
    [1, 2],
  ]);
  expect((await unique(zeros([2, 3, 4]), { axis: 1 })).values.shape).toEqual([2, 1, 4]);
});

it("bincount counts, adds weights in their order, and has as many as asked for", async () => {
  expect((await bincount(i32([1, 1, 3]))).tolist()).toEqual([0, 2, 0, 1]);
  const weights = tensor([0.5, 2 ** 24, 1, 1]);
  expect((await bincount(i32([0, 1, 1, 1]), { weights, minLength: 4 })).tolist()).toEqual([0.5, 2 ** 24, 0, 0]);
  expect((await bincount(i32([]))).shape).toEqual([0]);
  expect((await bincount(tensor(Uint8Array.of(2)))).tolist()).toEqual([0, 0, 1]);
  expectCode("BAD_DTYPE", () => bincount(tensor([1])));
  expectCode("BAD_SHAPE", () => bincount(i32([1]), { weights: zeros([2]) }));
  await expect(bincount(i32([-1]))).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
});

it("equal and allclose answer with a boolean", async () => {
  const x = tensor([1, 2]);
  const near = x.mul(1.000005);
  expect(await Promise.all([equal(x, x), equal(x, near), equal(x, tensor([[1, 2]]))])).toEqual([true, false, false]);
  expect(await Promise.all([allclose(x, near), allclose(x, near, { rtol: 1e-6 })])).toEqual([true, false]);
  expect(await allclose(tensor([Number.NaN]), tensor([Number.NaN]), { equalNan: true, atol: 0 })).toBe(true);
});
