import {
  check,
  checkOptions,
  checkTensor,
  crossEntropyRows,
  gather,
  show,
  Tensor,
  tidy,
  where,
  widened,
} from "@opt/core";
import { type CountedLabels, checkClassWeight, classesLast, countedRows, type Labels, labelIndices } from "./labels";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface CrossEntropyOptions {
  readonly reduction?: Reduction;
  /** Where the classes lie. Default -1, the last axis; PyTorch has them on axis 1. */
  readonly axis?: number;
  /** Rows with this label count for nothing, neither in the sum nor in the mean's divisor. */
  readonly ignoreIndex?: number;
  /** The share of the target that is spread evenly over all classes (Szegedy et al. 2016). */
  readonly labelSmoothing?: number;
  /** One factor per class. The mean divides by the sum of the factors of the labels. */
  readonly weight?: Tensor;
}

const OPTIONS = {
  reduction: "string",
  axis: "number",
  ignoreIndex: "number",
  labelSmoothing: "number",
  weight: "any",
} as const;

/** @throws OptError BAD_ARGUMENT */
export function settledCrossEntropy(where: string, options: CrossEntropyOptions) {
  checkOptions(where, options, OPTIONS);
  const { reduction = "mean", axis = -1, ignoreIndex = -100, labelSmoothing = 0, weight } = options;
  checkReduction(where, reduction);
  const whole = Number.isInteger(ignoreIndex);
  check(whole, "BAD_ARGUMENT", where, () => `ignoreIndex must be an integer, got ${ignoreIndex}.`, "Use -100.");
  check(
    labelSmoothing >= 0 && labelSmoothing <= 1,
    "BAD_ARGUMENT",
    where,
    () => `labelSmoothing must be in [0, 1], got ${show(labelSmoothing)}.`,
    "Use 0.1.",
  );
  if (weight !== undefined) checkTensor(where, weight, "weight");
  return { reduction, axis, ignoreIndex, labelSmoothing, weight };
}

/**
 * Cross-entropy of rows of logits [..., classes] with class labels [...], or with probabilities of the shape of the logits. PyTorch has the
 * classes on axis 1, which is `axis: 1`.
 * With p = softmax(logits), w = weight and s = labelSmoothing, a row is -(1 - s) w[label] log p[label] - s / classes * sum(w log p).
 * 16-bit logits are computed in f32, and only the loss is rounded.
 *
 * @param labels integers in an array, a typed array or a tensor, or a tensor of floats: probabilities; a tensor's are checked where the device shares the host's memory, and give NaN out of range elsewhere
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * const loss = crossEntropy(model.forward(x), [2, 0, 1, 1, 0]);
 * loss.backward();
 */
export function crossEntropy(logits: Tensor, labels: Labels, options: CrossEntropyOptions = {}): Tensor {
  const settled = settledCrossEntropy("crossEntropy", options);
  const { axis, ignoreIndex, weight } = settled;
  checkTensor("crossEntropy", logits, "logits");
  return tidy(() => {
    const given = widened(logits);
    const wide = classesLast("crossEntropy", given.dtype === "f64" ? given : given.to("f32"), axis);
    checkClassWeight("crossEntropy", weight, wide.shape.at(-1)!);
    const loss = isSoft(labels, logits)
      ? softLoss(wide, softTargets(wide, classesLast("crossEntropy", labels, axis)), settled)
      : lossOf(wide, labelIndices("crossEntropy", labels, wide, ignoreIndex), settled);
    return given.dtype === "f16" || given.dtype === "bf16" ? loss.to(given.dtype) : loss;
  });
}

/** Targets that are probabilities: floats with as many axes as the logits. */
function isSoft(labels: Labels, { shape }: Tensor): labels is Tensor {
  const floats = ["f32", "f64", "f16", "bf16"];
  return labels instanceof Tensor && labels.shape.length === shape.length && floats.includes(labels.dtype);
}

function softTargets(logits: Tensor, targets: Tensor): Tensor {
  check(
    String(targets.shape) === String(logits.shape) && targets.shape.length === logits.shape.length,
    "BAD_SHAPE",
    "crossEntropy",
    () => `targets that are probabilities must have the shape of the logits, got [${targets.shape}].`,
    `Class labels are integers: labels.to("i32").`,
  );
  return targets.to(logits.dtype);
}

/** -sum(w t log p) of each row, t being the target, smoothed. The mean is over rows. */
function softLoss(logits: Tensor, targets: Tensor, { reduction, labelSmoothing, weight }: ResolvedOptions): Tensor {
  const smooth =
    labelSmoothing > 0 ? targets.mul(1 - labelSmoothing).add(labelSmoothing / logits.shape.at(-1)!) : targets;
  const terms = smooth.mul(logits.logSoftmax(-1)).neg();
  return reduce((weight === undefined ? terms : terms.mul(weight.to(logits.dtype))).sum(-1), reduction);
}

type ResolvedOptions = ReturnType<typeof settledCrossEntropy>;

/** For f32 and f64 logits: no 16-bit float tells class 257 from class 256. */
function lossOf(
  logits: Tensor,
  counted: CountedLabels,
  { reduction, ignoreIndex, labelSmoothing, weight }: ResolvedOptions,
): Tensor {
  const { indices, count } = counted;
  const dtype = logits.dtype as "f32" | "f64";
  const plain = crossEntropyRows(logits, indices, ignoreIndex);
  if (weight === undefined && labelSmoothing === 0) {
    if (reduction !== "mean" || count === plain.size) return reduce(plain, reduction);
    return plain.sum().div(count ?? countedRows(indices, ignoreIndex, dtype).sum());
  }
  const counts = countedRows(indices, ignoreIndex, dtype);
  const factor = weight?.to(dtype);
  // An ignored label is no row of the weights: class 0 is used in its place, times 0.
  const factors = factor === undefined ? counts : gather(factor, indices.to(dtype).mul(counts).to("i32")).mul(counts);
  let losses = plain.mul(factors);
  if (labelSmoothing > 0) {
    const logProbabilities = logits.logSoftmax(-1);
    const spread = (factor === undefined ? logProbabilities : logProbabilities.mul(factor)).sum(-1);
    losses = losses.mul(1 - labelSmoothing).sub(spread.mul(labelSmoothing / logits.shape.at(-1)!));
  }
  // Not a product: what an ignored row has may be infinite, and so is the gradient of a mean over no row.
  losses = where(counts.gt(0), losses, 0);
  return reduction === "mean" ? losses.sum().div(factors.sum()) : reduce(losses, reduction);
}
