/** Losses that ask for a distance between scores. */
import {
  check,
  checkOptions,
  checkTensor,
  where as choose,
  clamp,
  gather,
  gatherAlong,
  oneHot,
  relu,
  show,
  softplus,
  type Tensor,
  tidy,
  widened,
} from "@opt/core";
import { checkClassWeight, type Labels, labelIndices } from "./labels";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface MarginRankingLossOptions {
  readonly reduction?: Reduction;
  /** How much larger the better score should be. Default 0. */
  readonly margin?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function settledMarginRanking(where: string, options: MarginRankingLossOptions) {
  checkOptions(where, options, { reduction: "string", margin: "number" });
  const { reduction = "mean", margin = 0 } = options;
  checkReduction(where, reduction);
  return { reduction, margin };
}

/**
 * max(-target (input1 - input2) + margin, 0): the first is to be larger where the target is 1, the second where it is -1.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * marginRankingLoss(tensor([1, 2]), tensor([2, 1]), tensor([1, 1])); // 0.5
 */
export function marginRankingLoss(
  input1: Tensor,
  input2: Tensor,
  target: Tensor,
  options: MarginRankingLossOptions = {},
): Tensor {
  const name = "marginRankingLoss";
  const { reduction, margin } = settledMarginRanking(name, options);
  checkPair(name, input1, input2);
  checkPair(name, input1, target);
  return tidy(() => reduce(clamp(target.mul(widened(input2).sub(input1)).add(margin), 0), reduction));
}

export interface MultiMarginLossOptions {
  readonly reduction?: Reduction;
  /** 1, or 2 for squares. Default 1. */
  readonly p?: number;
  /** How much larger the score of the label should be. Default 1. */
  readonly margin?: number;
  /** One factor per class, for the rows with that label. */
  readonly weight?: Tensor;
}

const MULTI = { reduction: "string", p: "number", margin: "number", weight: "any" } as const;

/** @throws OptError BAD_ARGUMENT */
export function settledMultiMargin(where: string, options: MultiMarginLossOptions) {
  checkOptions(where, options, MULTI);
  const { reduction = "mean", p = 1, margin = 1, weight } = options;
  checkReduction(where, reduction);
  check(p === 1 || p === 2, "BAD_ARGUMENT", where, () => `p must be 1 or 2, got ${show(p)}.`, "Use 1.");
  if (weight !== undefined) checkTensor(where, weight, "weight");
  return { reduction, p, margin, weight };
}

/**
 * Mean over the classes of w[label] max(margin - input[label] + input[class], 0)^p, the label's own class counting 0 (Weston & Watkins 1999).
 *
 * @param input scores [batch, classes], or [classes]
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * multiMarginLoss(tensor([[0.1, 0.2, 0.4, 0.8]]), [3]); // 0.325
 */
export function multiMarginLoss(input: Tensor, labels: Labels, options: MultiMarginLossOptions = {}): Tensor {
  const name = "multiMarginLoss";
  const { reduction, p, margin, weight } = settledMultiMargin(name, options);
  checkTensor(name, input, "input");
  const classes = input.shape.at(-1) ?? 0;
  const isRows = input.shape.length === 1 || input.shape.length === 2;
  check(isRows && classes > 0, "BAD_SHAPE", name, () => `input must be [batch, classes], got [${input.shape}].`);
  checkClassWeight(name, weight, classes);
  return tidy(() => {
    const scores = widened(input);
    const { indices } = labelIndices(name, labels, input, Number.NaN);
    const own = gatherAlong(scores, indices.unsqueeze(-1), -1);
    const short = relu(scores.sub(own).add(margin));
    const others = choose(oneHot(indices, classes).eq(0), p === 1 ? short : short.mul(short), 0);
    const losses = (weight === undefined ? others : others.mul(gather(weight, indices).unsqueeze(-1))).mean(-1);
    return reduce(losses, reduction);
  });
}

export interface HingeEmbeddingLossOptions {
  readonly reduction?: Reduction;
  /** From this distance on what differs costs nothing. Default 1. */
  readonly margin?: number;
}

/** @throws OptError BAD_ARGUMENT */
export function settledHingeEmbedding(where: string, options: HingeEmbeddingLossOptions) {
  checkOptions(where, options, { reduction: "string", margin: "number" });
  const { reduction = "mean", margin = 1 } = options;
  checkReduction(where, reduction);
  return { reduction, margin };
}

/**
 * Of distances: x where the target is 1, and max(margin - x, 0) where it is -1.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * hingeEmbeddingLoss(tensor([0.5, 0.25]), tensor([1, -1])); // (0.5 + 0.75) / 2
 */
export function hingeEmbeddingLoss(input: Tensor, target: Tensor, options: HingeEmbeddingLossOptions = {}): Tensor {
  const name = "hingeEmbeddingLoss";
  const { reduction, margin } = settledHingeEmbedding(name, options);
  checkPair(name, input, target);
  return tidy(() => {
    const x = widened(input);
    const unlike = choose(target.eq(1), 0, clamp(x.neg().add(margin), 0));
    return reduce(choose(target.eq(-1), 0, x).add(unlike), reduction);
  });
}

export interface SoftMarginLossOptions {
  readonly reduction?: Reduction;
}

/** @throws OptError BAD_ARGUMENT */
export function settledSoftMargin(where: string, options: SoftMarginLossOptions) {
  checkOptions(where, options, { reduction: "string" });
  const { reduction = "mean" } = options;
  checkReduction(where, reduction);
  return { reduction };
}

/**
 * log(1 + exp(-target input)) of targets 1 and -1.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * softMarginLoss(tensor([0, 2]), tensor([1, -1])); // (log 2 + log(1 + e^2)) / 2
 */
export function softMarginLoss(input: Tensor, target: Tensor, options: SoftMarginLossOptions = {}): Tensor {
  const name = "softMarginLoss";
  const { reduction } = settledSoftMargin(name, options);
  checkPair(name, input, target);
  return tidy(() => reduce(softplus(widened(input).mul(target).neg(), 1, Number.POSITIVE_INFINITY), reduction));
}
