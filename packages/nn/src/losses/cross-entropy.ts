import { check, checkOptions, checkTensor, crossEntropyRows, gather, show, type Tensor, tidy } from "@opt/core";
import { type Counted, countedRows, type Labels, labelIndices } from "./labels";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface CrossEntropyOptions {
  readonly reduction?: Reduction;
  /** Rows with this label count for nothing, neither in the sum nor in the mean's divisor. */
  readonly ignoreIndex?: number;
  /** The share of the target that is spread evenly over all classes (Szegedy et al. 2016). */
  readonly labelSmoothing?: number;
  /** One factor per class. The mean divides by the sum of the factors of the labels. */
  readonly weight?: Tensor;
}

const OPTIONS = { reduction: "string", ignoreIndex: "number", labelSmoothing: "number", weight: "any" } as const;

/**
 * Cross-entropy of rows of logits [..., classes] with class labels [...], as PyTorch's (which has the classes on axis 1).
 * With p = softmax(logits), w = weight and s = labelSmoothing, a row is -(1 - s) w[label] log p[label] - s / classes * sum(w log p).
 * 16-bit logits are computed in f32, and only the loss is rounded.
 *
 * @param labels integers in an array, a typed array or a tensor; a tensor's are checked where the device shares the host's memory, and give NaN out of range elsewhere
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * const loss = crossEntropy(model.forward(x), [2, 0, 1, 1, 0]);
 * loss.backward();
 */
export function crossEntropy(logits: Tensor, labels: Labels, options: CrossEntropyOptions = {}): Tensor {
  checkOptions("crossEntropy", options, OPTIONS);
  checkTensor("crossEntropy", logits, "logits");
  const { reduction = "mean", ignoreIndex = -100, labelSmoothing = 0, weight } = options;
  checkReduction("crossEntropy", reduction);
  check(
    Number.isInteger(ignoreIndex),
    "BAD_ARGUMENT",
    "crossEntropy",
    () => `ignoreIndex must be an integer, got ${ignoreIndex}.`,
    "Use -100.",
  );
  check(
    labelSmoothing >= 0 && labelSmoothing <= 1,
    "BAD_ARGUMENT",
    "crossEntropy",
    () => `labelSmoothing must be in [0, 1], got ${show(labelSmoothing)}.`,
    "Use 0.1.",
  );
  const classes = logits.shape.at(-1) ?? 0;
  if (weight !== undefined) {
    checkTensor("crossEntropy", weight, "weight");
    check(
      weight.shape.length === 1 && weight.size === classes,
      "BAD_SHAPE",
      "crossEntropy",
      () => `weight must be [${classes}], one factor per class, got [${weight.shape}].`,
      "Check the number of classes.",
    );
  }
  return tidy(() => {
    const wide = logits.dtype === "f64" ? logits : logits.to("f32");
    const counted = labelIndices("crossEntropy", labels, wide, ignoreIndex);
    const loss = lossOf(wide, counted, { ...options, reduction, ignoreIndex, labelSmoothing });
    return logits.dtype === "f16" || logits.dtype === "bf16" ? loss.to(logits.dtype) : loss;
  });
}

type Settled = Required<Omit<CrossEntropyOptions, "weight">> & Pick<CrossEntropyOptions, "weight">;

/** For f32 and f64 logits: no 16-bit float tells class 257 from class 256. */
function lossOf(logits: Tensor, counted: Counted, { reduction, ignoreIndex, labelSmoothing, weight }: Settled): Tensor {
  const { indices, count } = counted;
  const dtype = logits.dtype as "f32" | "f64";
  const plain = crossEntropyRows(logits, indices, ignoreIndex);
  if (weight === undefined && labelSmoothing === 0) {
    if (reduction !== "mean" || count === plain.size) return reduce(plain, reduction);
    return plain.sum().div(count ?? countedRows(indices, ignoreIndex, dtype).sum());
  }
  const counts = countedRows(indices, ignoreIndex, dtype);
  const factor = weight?.to(dtype);
  // An ignored label is no row of the weights: class 0 stands in for it, times 0.
  const factors = factor === undefined ? counts : gather(factor, indices.to(dtype).mul(counts).to("i32")).mul(counts);
  let losses = plain.mul(factors);
  if (labelSmoothing > 0) {
    const logProbabilities = logits.logSoftmax(-1);
    const spread = (factor === undefined ? logProbabilities : logProbabilities.mul(factor)).sum(-1).mul(counts);
    losses = losses.mul(1 - labelSmoothing).sub(spread.mul(labelSmoothing / logits.shape.at(-1)!));
  }
  return reduction === "mean" ? losses.sum().div(factors.sum()) : reduce(losses, reduction);
}
