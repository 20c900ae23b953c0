import { adaptiveAvgPool2d, norm, parameter, type Tensor, tensor } from "@opt/core";
import { expect, test } from "vitest";
import { crossEntropy, huberLoss } from "../index";

/** PyTorch 2.13's gradients where something is NaN, infinite or not there. */
const CASES: [string, number[] | number[][], (x: Tensor) => Tensor, number[]][] = [
  ["a norm of NaN", [Number.NaN, 1, 2], (x) => norm(x), [Number.NaN, Number.NaN, Number.NaN]],
  ["a norm of nothing but zeros", [0, 0], (x) => norm(x), [0, 0]],
  ["a norm of p = 0.5 of NaN", [Number.NaN, 1], (x) => norm(x, 0.5), [Number.NaN, Number.NaN]],
  ["Huber's loss far away", [Infinity, 1, -Infinity], (x) => huberLoss(x, tensor([0, 0, 0])), [1 / 3, 1 / 3, -1 / 3]],
  ["smoothed cross-entropy of ignored rows alone", [[1, 2]], (x) => smoothed(x, [-100], "mean"), [0, 0]],
  [
    "smoothed cross-entropy, an ignored row with -Infinity",
    [[1, -Infinity]],
    (x) => smoothed(x, [-100], "sum"),
    [0, 0],
  ],
];

function smoothed(x: Tensor, labels: number[], reduction: "mean" | "sum"): Tensor {
  return crossEntropy(x, labels, { labelSmoothing: 0.1, reduction });
}

test.each(CASES)("the gradient of %s", async (_, values, run, expected) => {
  const x = parameter(values);
  run(x).backward();
  expect([...(await x.grad!.data())]).toEqual(expected.map(Math.fround));
});

test("an ignored row adds nothing to a smoothed loss, whatever it holds", async () => {
  expect((await smoothed(tensor([[1, -Infinity]]), [-100], "sum").data())[0]).toBe(0);
});

test("a NaN reaches the part of the image that it is in, no other", async () => {
  const image = tensor([
    [
      [
        [Number.NaN, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 1, 2],
        [3, 4, 5, 6],
      ],
    ],
  ]);
  expect([...(await adaptiveAvgPool2d(image, 2).data())]).toEqual([Number.NaN, 4.5, 6, 3.5]);
});
