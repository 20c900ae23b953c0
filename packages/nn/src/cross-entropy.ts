import { crossEntropyRows, gather, OptError, type Tensor } from "@opt/core";
import { type Counted, countedRows, type Labels, labelIndices } from "./labels";
import { checkReduction, type Reduction } from "./reduction";

export interface CrossEntropyOptions {
  readonly reduction?: Reduction;
  /** Rows with this label count for nothing, neither in the sum nor in the mean's divisor. */
  readonly ignoreIndex?: number;
  /** The share of the target that is spread evenly over all classes (Szegedy et al. 2016). */
  readonly labelSmoothing?: number;
  /** One factor per class. The mean divides by the sum of the factors of the labels. */
  readonly weight?: Tensor;
}

/**
 * Cross-entropy of rows of logits [..., classes] with class labels [...], as PyTorch's (which has the classes on axis 1).
 * With p = softmax(logits), w = weight and s = labelSmoothing, a row is -(1 - s) w[label] log p[label] - s / classes * sum(w log p).
 *
 * @param labels integers in an array, a typed array or a tensor; a tensor's are not checked, and give NaN out of range
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * const loss = crossEntropy(model.forward(x), [2, 0, 1, 1, 0]);
 * loss.backward();
 */
export function crossEntropy(logits: Tensor, labels: Labels, options: CrossEntropyOptions = {}): Tensor {
  const { reduction = "mean", ignoreIndex = -100, labelSmoothing = 0, weight } = options;
  checkReduction("crossEntropy", reduction);
  if (!(labelSmoothing >= 0 && labelSmoothing <= 1)) {
    throw new OptError(
      "BAD_ARGUMENT",
      "crossEntropy",
      `labelSmoothing must be in [0, 1], got ${labelSmoothing}.`,
      "Use 0.1.",
    );
  }
  const classes = logits.shape.at(-1) ?? 0;
  if (weight !== undefined && (weight.shape.length !== 1 || weight.size !== classes)) {
    throw new OptError(
      "BAD_SHAPE",
      "crossEntropy",
      `weight must be [${classes}], one factor per class, got [${weight.shape}].`,
      "Check the number of classes.",
    );
  }
  const counted = labelIndices("crossEntropy", labels, logits, ignoreIndex);
  const plain = crossEntropyRows(logits, counted.indices, ignoreIndex);
  if (weight === undefined && labelSmoothing === 0) return reduced(plain, reduction, counted, ignoreIndex);

  const counts = countedRows(counted.indices, ignoreIndex, plain);
  // An ignored label is no row of the weights: class 0 stands in for it, times 0.
  const factors =
    weight === undefined ? counts : gather(weight, counted.indices.to(counts.dtype).mul(counts).to("i32")).mul(counts);
  let losses = plain.mul(factors);
  if (labelSmoothing > 0) {
    const logProbabilities = logits.logSoftmax(-1);
    const spread = (weight === undefined ? logProbabilities : logProbabilities.mul(weight)).sum(-1).mul(counts);
    losses = losses.mul(1 - labelSmoothing).sub(spread.mul(labelSmoothing / classes));
  }
  if (reduction === "none") return losses;
  return reduction === "sum" ? losses.sum() : losses.sum().div(factors.sum());
}

function reduced(rows: Tensor, reduction: Reduction, { indices, count }: Counted, ignoreIndex: number): Tensor {
  if (reduction === "none") return rows;
  if (reduction === "sum") return rows.sum();
  if (count === rows.size) return rows.mean();
  return rows.sum().div(count ?? countedRows(indices, ignoreIndex, rows).sum());
}
