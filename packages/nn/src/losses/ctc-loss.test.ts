import { parameter, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { ctcLoss } from "./ctc-loss";

const scores = () =>
  parameter(
    Float32Array.from({ length: 24 }, (_, i) => Math.sin(i)),
    { shape: [3, 2, 4] },
  );

it("is infinite where the times do not suffice", () => {
  const x = scores();
  const losses = ctcLoss(
    x.logSoftmax(-1),
    [
      [1, 1, 1],
      [1, 2, 3],
    ],
    [3, 3],
    [3, 3],
    { reduction: "none" },
  );
  expect(losses.dataSync()[0]).toBe(Number.POSITIVE_INFINITY);
  expect(losses.dataSync()[1]).toBeLessThan(20);
  losses.sum().backward();
  expect(x.grad!.slice(0, 1, 1).dataSync().some(Number.isFinite)).toBe(false);
  expect(x.grad!.slice(1, 2, 1).dataSync().every(Number.isFinite)).toBe(true);
});

it.each([
  [3, 1],
  [2, 0],
  [0, 0],
])("divides each loss by its labels for the mean, where it has some: %d and %d", (...counts) => {
  const labels = [
    [1, 2, 3],
    [1, 1, 1],
  ];
  const losses = ctcLoss(scores().logSoftmax(-1), labels, [3, 3], counts, { reduction: "none" }).dataSync();
  const mean = ctcLoss(scores().logSoftmax(-1), labels, [3, 3], counts).dataSync()[0]!;
  expect(mean).toBeCloseTo((losses[0]! / (counts[0] || 1) + losses[1]! / (counts[1] || 1)) / 2, 5);
});

it("takes classes without probability", () => {
  const certain = tensor(
    [
      [0, -Infinity],
      [-Infinity, 0],
    ],
    { dtype: "f64" },
  );
  expect(ctcLoss(certain, [1], [2], [1], { reduction: "sum" }).dataSync()[0]).toBe(0);
});

it.each<[string, "BAD_ARGUMENT" | "BAD_SHAPE", () => unknown]>([
  ["a blank that is no class", "BAD_ARGUMENT", () => ctcLoss(scores(), [[1], [1]], [3, 3], [1, 1], { blank: 4 })],
  ["more times than there are", "BAD_ARGUMENT", () => ctcLoss(scores(), [[1], [1]], [3, 4], [1, 1])],
  ["lengths of other sequences", "BAD_SHAPE", () => ctcLoss(scores(), [[1], [1]], [3], [1, 1])],
  ["labels that the lengths do not add up to", "BAD_SHAPE", () => ctcLoss(scores(), [1, 2, 3], [3, 3], [1, 1])],
  ["labels of another batch", "BAD_SHAPE", () => ctcLoss(scores(), [[1], [1], [2]], [3, 3], [1, 1])],
  ["a label that is no class", "BAD_ARGUMENT", () => ctcLoss(scores(), [[7], [1]], [3, 3], [1, 1])],
  [
    "joined labels with lengths on a device",
    "BAD_ARGUMENT",
    () => ctcLoss(scores(), [1, 2], [3, 3], tensor([1, 1], { dtype: "i32" })),
  ],
])("rejects %s", (_, code, body) => expectCode(code, body));
