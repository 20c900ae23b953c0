import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { compile } from "./compile/compile";
import { emptyLike, onesLike, parameter, tensor, zeros, zerosLike } from "./create";
import { eye, linspace, trilIndices, triuIndices } from "./ranges";
import type { Tensor } from "./tensor/tensor";

describe("linspace is PyTorch's", () => {
  it.each<[Parameters<typeof linspace>, number[]]>([
    [
      [0, 1, 5],
      [0, 0.25, 0.5, 0.75, 1],
    ],
    [
      [3, -3, 4],
      [3, 1, -1, -3],
    ],
    [[2, 9, 1], [2]],
    [[0, 1, 0], []],
    [
      [0, 10, 5, { dtype: "i32" }],
      [0, 2, 5, 7, 10],
    ],
    [
      [-3.7, 7.2, 6, { dtype: "i32" }],
      [-3, -1, 1, 3, 5, 7],
    ],
    [
      [10.9, 0.9, 7, { dtype: "u8" }],
      [10, 8, 6, 5, 3, 1, 0],
    ],
    [
      [-1, 1, 4, { dtype: "f64" }],
      [-1, -1 + 2 / 3, 1 - 2 / 3, 1],
    ],
  ])("of %j", (given, expected) => {
    const made = linspace(...given);
    expect([made.dtype, made.shape]).toEqual([given[3]?.dtype ?? "f32", [expected.length]]);
    expect([...made.dataSync()]).toEqual(expected);
  });

  it("and throws for what is no count, and for infinite ends", () => {
    for (const count of [-1, 1.5, Number.NaN]) expectCode("BAD_ARGUMENT", () => linspace(0, 1, count));
    expectCode("BAD_ARGUMENT", () => linspace(0, Number.POSITIVE_INFINITY, 3));
  });
});

describe("eye", () => {
  it.each<[Tensor, number[], string]>([
    [eye(2), [1, 0, 0, 1], "f32"],
    [eye(2, 3), [1, 0, 0, 0, 1, 0], "f32"],
    [eye(3, 2, { dtype: "f64" }), [1, 0, 0, 1, 0, 0], "f64"],
    [eye(2, { dtype: "bool" }), [1, 0, 0, 1], "bool"],
    [eye(0), [], "f32"],
  ])("%#", (made, expected, dtype) => {
    expect([...made.dataSync()]).toEqual(expected);
    expect(made.dtype).toBe(dtype);
  });

  it("throws for what is no count", () => expectCode("BAD_ARGUMENT", () => eye(-1)));

  it("is made again in each run of a compiled function", () => {
    const plus = compile((x: Tensor) => x.add(eye(2)), { check: "never" });
    for (let run = 0; run < 3; run++) expect([...plus(zeros([2, 2])).dataSync()]).toEqual([1, 0, 0, 1]);
  });
});

it("zerosLike and onesLike take shape and dtype from a tensor, and options before them", () => {
  const x = parameter([[1, 2]], { dtype: "f64" });
  const made = [zerosLike(x), onesLike(x), onesLike(x, { dtype: "i32" }), zerosLike(x, { requiresGrad: true })];
  expect(made.map(({ shape, dtype, requiresGrad }) => [shape, dtype, requiresGrad])).toEqual([
    [[1, 2], "f64", false],
    [[1, 2], "f64", false],
    [[1, 2], "i32", false],
    [[1, 2], "f64", true],
  ]);
  expect(made.map((y) => [...y.dataSync()])).toEqual([
    [0, 0],
    [1, 1],
    [1, 1],
    [0, 0],
  ]);
  expect([...onesLike(tensor(3)).dataSync()]).toEqual([1]);
});

it("emptyLike takes them, too, and leaves the elements to be set", () => {
  const x = parameter([[1, 2]], { dtype: "f64" });
  const made = [emptyLike(x), emptyLike(x, { dtype: "i32" }), emptyLike(x, { requiresGrad: true })];
  expect(made.map(({ shape, dtype, requiresGrad }) => [shape, dtype, requiresGrad])).toEqual([
    [[1, 2], "f64", false],
    [[1, 2], "i32", false],
    [[1, 2], "f64", true],
  ]);
  made[0]!.set(x);
  expect(made[0]!.tolist()).toEqual([[1, 2]]);
});

it("indices of triangles are row by row, on the device that is asked for", () => {
  const made = [trilIndices(2, 3), trilIndices(3, 2, -1), triuIndices(2, 3, 1), triuIndices(0, 3)];
  expect(made.map((x) => x.tolist())).toEqual([
    [
      [0, 1, 1],
      [0, 0, 1],
    ],
    [
      [1, 2, 2],
      [0, 0, 1],
    ],
    [
      [0, 0, 1],
      [1, 2, 2],
    ],
    [[], []],
  ]);
  expect([trilIndices(1, 1, 0, { device: "js" }), triuIndices(1, 1, 0, { device: "js" })].map((x) => x.dtype)).toEqual([
    "i32",
    "i32",
  ]);
  expectCode("UNKNOWN_DEVICE", () => trilIndices(1, 1, 0, { device: "abacus" }));
  expectCode("BAD_ARGUMENT", () => triuIndices(2, -1));
});
