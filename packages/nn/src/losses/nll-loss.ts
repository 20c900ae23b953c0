/** Negative log-likelihood of class labels. */
import {
  check,
  checkOptions,
  checkTensor,
  where as choose,
  gather,
  gatherAlong,
  type Tensor,
  tidy,
  widened,
  withFlatGradient,
} from "@opt/core";
import { checkClassWeight, classesLast, countedRows, type Labels, labelIndices } from "./labels";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface NllLossOptions {
  readonly reduction?: Reduction;
  /** Where the classes lie. Default -1, the last axis; PyTorch has them on axis 1. */
  readonly axis?: number;
  /** Rows with this label count for nothing, neither in the sum nor in the mean's divisor. Default -100. */
  readonly ignoreIndex?: number;
  /** One factor per class. The mean divides by the sum of the factors of the labels. */
  readonly weight?: Tensor;
}

const OPTIONS = { reduction: "string", axis: "number", ignoreIndex: "number", weight: "any" } as const;

/** @throws OptError BAD_ARGUMENT */
export function settledNll(where: string, options: NllLossOptions) {
  checkOptions(where, options, OPTIONS);
  const { reduction = "mean", axis = -1, ignoreIndex = -100, weight } = options;
  checkReduction(where, reduction);
  const whole = Number.isInteger(ignoreIndex);
  check(whole, "BAD_ARGUMENT", where, () => `ignoreIndex must be an integer, got ${ignoreIndex}.`, "Use -100.");
  if (weight !== undefined) checkTensor(where, weight, "weight");
  return { reduction, axis, ignoreIndex, weight };
}

/**
 * -w[label] logProbabilities[label] of each row. With `logSoftmax` before it, it is `crossEntropy`.
 *
 * @param labels integers in an array, a typed array or a tensor
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * const loss = nllLoss(model.forward(x).logSoftmax(), [2, 0, 1, 1, 0]);
 */
export function nllLoss(logProbabilities: Tensor, labels: Labels, options: NllLossOptions = {}): Tensor {
  const { reduction, axis, ignoreIndex, weight } = settledNll("nllLoss", options);
  checkTensor("nllLoss", logProbabilities, "logProbabilities");
  return tidy(() => {
    const rows = classesLast("nllLoss", widened(logProbabilities), axis);
    checkClassWeight("nllLoss", weight, rows.shape.at(-1)!);
    const { indices } = labelIndices("nllLoss", labels, rows, ignoreIndex);
    check(
      String(indices.shape) === String(rows.shape.slice(0, -1)) && indices.shape.length === rows.shape.length - 1,
      "BAD_SHAPE",
      "nllLoss",
      () => `labels must be [${rows.shape.slice(0, -1)}], got [${indices.shape}].`,
      "Pass one class per row.",
    );
    const dtype = rows.dtype === "f64" ? "f64" : "f32";
    const counts = countedRows(indices, ignoreIndex, dtype);
    // An ignored label is no class: class 0 is used in its place.
    const at = indices.to(dtype).mul(counts).to("i32");
    const factors = weight === undefined ? counts : gather(weight.to(dtype), at).mul(counts);
    const chosen = gatherAlong(withFlatGradient(rows), at.unsqueeze(-1), -1).squeeze(-1);
    const losses = choose(counts.gt(0), chosen.neg().mul(factors), 0);
    const loss = reduction === "mean" ? losses.sum().div(factors.sum()) : reduce(losses, reduction);
    return loss.to(rows.dtype);
  });
}
