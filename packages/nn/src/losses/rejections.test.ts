import { ones, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import * as nn from "../index";

const rows = () => zeros([2, 3]);

it.each<[string, "BAD_ARGUMENT" | "BAD_SHAPE", () => unknown]>([
  ["a variance of another shape", "BAD_SHAPE", () => nn.gaussianNllLoss(rows(), rows(), ones([3]))],
  ["an eps of 0", "BAD_ARGUMENT", () => nn.gaussianNllLoss(rows(), rows(), ones([2]), { eps: 0 })],
  ["a third power", "BAD_ARGUMENT", () => nn.multiMarginLoss(rows(), [0, 1], { p: 3 })],
  ["images as scores", "BAD_SHAPE", () => nn.multiMarginLoss(zeros([2, 3, 4]), [0, 1])],
  ["one target for several pairs", "BAD_SHAPE", () => nn.cosineEmbeddingLoss(rows(), rows(), ones([1]))],
  ["a negative of another shape", "BAD_SHAPE", () => nn.tripletMarginLoss(rows(), rows(), zeros([3, 3]))],
  ["scores that would be broadcast", "BAD_SHAPE", () => nn.marginRankingLoss(rows(), rows(), ones([3]))],
  ["a beta below 0", "BAD_ARGUMENT", () => nn.smoothL1Loss(rows(), rows(), { beta: -1 })],
  ["targets that would be broadcast", "BAD_SHAPE", () => nn.binaryCrossEntropy(rows(), ones([3]))],
  ["an axis that is not there", "BAD_ARGUMENT", () => nn.normalize(rows(), { axis: 2 })],
  ["vectors that do not fit", "BAD_SHAPE", () => nn.cosineSimilarity(rows(), zeros([4]))],
  ["distances of numbers", "BAD_SHAPE", () => nn.pairwiseDistance(zeros([]), zeros([]))],
])("rejects %s", (_, code, body) => expectCode(code, body));

it("names batchMean where PyTorch's spelling is given", () => {
  const reduction = "batchmean" as "batchMean";
  expect(() => nn.klDiv(rows(), rows(), { reduction })).toThrow(/"batchMean".*got "batchmean"/);
});
