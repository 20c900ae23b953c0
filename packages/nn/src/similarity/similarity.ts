/** How near vectors are. */
import { check, checkOptions, checkTensor, clamp, norm, type Shape, type Tensor, tidy, widened } from "@opt/core";
import { raised } from "./raised";

export interface CosineSimilarityOptions {
  /** Where the vectors are. Default 1, as PyTorch's. */
  readonly axis?: number;
  /** The least length by which a vector is divided. Default 1e-8. */
  readonly eps?: number;
}

/**
 * The cosine of the angles between vectors: sum((a / |a|) (b / |b|)) along an axis. Shapes are broadcast.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * cosineSimilarity(tensor([[1, 0]]), tensor([[1, 1]])); // [0.7071]
 */
export function cosineSimilarity(a: Tensor, b: Tensor, options: CosineSimilarityOptions = {}): Tensor {
  const where = "cosineSimilarity";
  checkTensor(where, a, "the first tensor");
  checkTensor(where, b, "the second tensor");
  checkOptions(where, options, { axis: "number", eps: "number" });
  const { axis = 1, eps = 1e-8 } = options;
  return tidy(() => {
    const shape = common(a.shape, b.shape);
    const along = axis < 0 ? axis + shape.length : axis;
    const unit = (x: Tensor) => {
      const wide = widened(x);
      const vectors = x.shape.join() === shape.join() ? wide : wide.expand(shape);
      return vectors.div(raised(norm(vectors, 2, along, true), eps));
    };
    return unit(a).mul(unit(b)).sum(along);
  });
}

export interface NormalizeOptions {
  /** Which norm. Default 2. */
  readonly p?: number;
  /** Where the vectors are. Default 1, as PyTorch's. */
  readonly axis?: number;
  /** The least norm by which a vector is divided. Default 1e-12. */
  readonly eps?: number;
}

/**
 * Vectors divided by their norms: x / max(|x|, eps).
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * normalize(tensor([[3, 4]])); // [[0.6, 0.8]]
 */
export function normalize(x: Tensor, options: NormalizeOptions = {}): Tensor {
  checkTensor("normalize", x);
  checkOptions("normalize", options, { p: "number", axis: "number", eps: "number" });
  const { p = 2, axis = 1, eps = 1e-12 } = options;
  return tidy(() => x.div(clamp(norm(x, p, axis, true), eps)));
}

export interface PairwiseDistanceOptions {
  /** Which norm. Default 2. */
  readonly p?: number;
  /** Added to each difference, so that the distance of equal vectors has a gradient. Default 1e-6. */
  readonly eps?: number;
  readonly keepDim?: boolean;
}

/**
 * The distances of vectors along the last axis: the p-norm of a - b + eps. Shapes are broadcast.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * pairwiseDistance(tensor([[3, 4]]), tensor([[0, 0]])); // [5]
 */
export function pairwiseDistance(a: Tensor, b: Tensor, options: PairwiseDistanceOptions = {}): Tensor {
  const where = "pairwiseDistance";
  checkTensor(where, a, "the first tensor");
  checkTensor(where, b, "the second tensor");
  checkOptions(where, options, { p: "number", eps: "number", keepDim: "boolean" });
  const { p = 2, eps = 1e-6, keepDim = false } = options;
  const isVector = a.shape.length > 0 && b.shape.length > 0;
  check(
    isVector,
    "BAD_SHAPE",
    where,
    () => `needs vectors, got [${a.shape}] and [${b.shape}].`,
    "Reshape numbers to [1].",
  );
  return tidy(() => norm(widened(a).sub(widened(b)).add(eps), p, -1, keepDim));
}

/** The shape of both together; an extent that does not fit is left to `expand`. */
function common(a: Shape, b: Shape): Shape {
  const [longer, shorter] = a.length < b.length ? [b, a] : [a, b];
  return longer.map((extent, axis) => {
    const other = shorter[axis - longer.length + shorter.length] ?? 1;
    return extent === 1 ? other : extent;
  });
}
