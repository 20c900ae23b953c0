/** Functions take the options that methods have. */
import { expect, it } from "vitest";
import { tensor } from "../create";
import { argsort, matmul, relu, round, sort, std } from "../functions";

const x = tensor([
  [1, 5],
  [3, 1],
]);

it("std", () => {
  const result = std(x, 0, { correction: 0, keepDim: true });
  expect([result.shape, result.tolist()]).toEqual([[1, 2], [[1, 2]]]);
});

it("round", () => {
  expect(round(tensor([1.26, -0.04], { dtype: "f64" }), { decimals: 1 }).tolist()).toEqual([1.3, -0]);
});

it("matmul", () => {
  expect(matmul(x, x, { transposeA: true }).tolist()).toEqual([
    [10, 8],
    [8, 26],
  ]);
  expect(matmul(x, x, { transposeB: true }).tolist()).toEqual([
    [26, 8],
    [8, 10],
  ]);
});

it("sort and argsort", () => {
  const equal = tensor([2, 1, 2, 1]);
  expect(sort(equal, 0, { stable: true }).indices.tolist()).toEqual([1, 3, 0, 2]);
  expect(argsort(equal, 0, { stable: true }).tolist()).toEqual([1, 3, 0, 2]);
});

it("an op ignores what is more than its operands", () => {
  expect([tensor([-1, 2])].map(relu)[0]!.tolist()).toEqual([0, 2]);
});
