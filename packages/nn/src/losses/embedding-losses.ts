/** Losses of distances and angles between embeddings. */
import { check, checkOptions, checkTensor, clamp, type Tensor, tidy, where, widened } from "@opt/core";
import { pairwiseDistance } from "../similarity/similarity";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface TripletMarginLossOptions {
  readonly reduction?: Reduction;
  /** How much farther the negative should be. Default 1. */
  readonly margin?: number;
  /** Which norm. Default 2. */
  readonly p?: number;
  /** Added to each difference. Default 1e-6. */
  readonly eps?: number;
  /** Takes the distance of positive and negative where it is the smaller one (Balntas et al. 2016). Default false. */
  readonly swap?: boolean;
}

const TRIPLET = { reduction: "string", margin: "number", p: "number", eps: "number", swap: "boolean" } as const;

/** @throws OptError BAD_ARGUMENT */
export function settledTripletMargin(where: string, options: TripletMarginLossOptions) {
  checkOptions(where, options, TRIPLET);
  const { reduction = "mean", margin = 1, p = 2, eps = 1e-6, swap = false } = options;
  checkReduction(where, reduction);
  return { reduction, margin, p, eps, swap };
}

/**
 * max(d(anchor, positive) - d(anchor, negative) + margin, 0) for vectors along the last axis (Schroff et al. 2015).
 *
 * @throws OptError BAD_SHAPE if the shapes differ; BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const loss = tripletMarginLoss(randn([8, 16]), randn([8, 16]), randn([8, 16]), { margin: 0.5 });
 */
export function tripletMarginLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletMarginLossOptions = {},
): Tensor {
  const name = "tripletMarginLoss";
  const { reduction, margin, p, eps, swap } = settledTripletMargin(name, options);
  checkPair(name, anchor, positive);
  checkPair(name, anchor, negative);
  return tidy(() => {
    const distance = (from: Tensor, to: Tensor) => pairwiseDistance(widened(from), to, { p, eps });
    const near = distance(anchor, positive);
    const far = distance(anchor, negative);
    const other = swap ? far.minimum(distance(positive, negative)) : far;
    return reduce(clamp(near.sub(other).add(margin), 0), reduction);
  });
}

export interface CosineEmbeddingLossOptions {
  readonly reduction?: Reduction;
  /** Up to this cosine different vectors cost nothing. Default 0. */
  readonly margin?: number;
}

/** What keeps the squared lengths above 0, as in PyTorch. */
const LEAST = 1e-12;

/** @throws OptError BAD_ARGUMENT */
export function settledCosineEmbedding(where: string, options: CosineEmbeddingLossOptions) {
  checkOptions(where, options, { reduction: "string", margin: "number" });
  const { reduction = "mean", margin = 0 } = options;
  checkReduction(where, reduction);
  return { reduction, margin };
}

/**
 * 1 - cos(a, b) where the target is 1, and max(cos(a, b) - margin, 0) where it is -1.
 *
 * @param target [batch] for vectors [batch, size], or [] for [size]
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const loss = cosineEmbeddingLoss(randn([3, 8]), randn([3, 8]), tensor([1, -1, 1]));
 */
export function cosineEmbeddingLoss(
  a: Tensor,
  b: Tensor,
  target: Tensor,
  options: CosineEmbeddingLossOptions = {},
): Tensor {
  const name = "cosineEmbeddingLoss";
  const { reduction, margin } = settledCosineEmbedding(name, options);
  checkPair(name, a, b);
  checkTensor(name, target, "target");
  const { shape } = a;
  check(
    shape.length > 0 && String(target.shape) === String(shape.slice(0, -1)) && shape.length <= 2,
    "BAD_SHAPE",
    name,
    () => `target must be [batch] for vectors [batch, size], got [${target.shape}] for [${shape}].`,
    "One 1 or -1 for each pair.",
  );
  return tidy(() => {
    const dot = (x: Tensor, y: Tensor) => widened(x).mul(y).sum(-1);
    const squares = dot(a, a).add(LEAST).mul(dot(b, b).add(LEAST));
    const cosine = dot(a, b).div(squares.sqrt());
    const alike = where(target.eq(1), cosine.neg().add(1), 0);
    const unlike = where(target.eq(-1), clamp(cosine.sub(margin), 0), 0);
    return reduce(alike.add(unlike), reduction);
  });
}
