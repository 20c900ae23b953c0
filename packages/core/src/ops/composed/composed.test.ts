/** Options of functions that compose ops, by numbers that one can check by eye. */
import { expect, it } from "vitest";
import {
  cdist,
  cross,
  glu,
  median,
  ones,
  quantile,
  repeatInterleave,
  rot90,
  tensor,
  tensordot,
  unbind,
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
