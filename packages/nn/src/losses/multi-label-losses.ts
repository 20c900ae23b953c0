/** Losses of samples that have several labels. */
import {
  check,
  checkOptions,
  checkTensor,
  where as choose,
  cumsum,
  gatherAlong,
  oneHot,
  relu,
  type Tensor,
  tidy,
  widened,
} from "@opt/core";
import { bceWithLogits } from "./bce-with-logits";
import { checkClassWeight, type Labels, labelIndices } from "./labels";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface MultiLabelMarginLossOptions {
  readonly reduction?: Reduction;
}

/** @throws OptError BAD_ARGUMENT */
export function settledMultiLabelMargin(where: string, options: MultiLabelMarginLossOptions) {
  checkOptions(where, options, { reduction: "string" });
  const { reduction = "mean" } = options;
  checkReduction(where, reduction);
  return { reduction };
}

/**
 * The sum over labels l and other classes c of max(1 - input[l] + input[c], 0), divided by the number of classes.
 *
 * @param input scores [batch, classes], or [classes]
 * @param labels of the shape of the input: the labels of each sample come first, then -1. What follows the first -1 counts for nothing
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for labels or options out of range
 * @example
 * multiLabelMarginLoss(tensor([[0.1, 0.2, 0.4, 0.8]]), [[3, 0, -1, 1]]); // 0.85
 */
export function multiLabelMarginLoss(input: Tensor, labels: Labels, options: MultiLabelMarginLossOptions = {}): Tensor {
  const name = "multiLabelMarginLoss";
  const { reduction } = settledMultiLabelMargin(name, options);
  checkTensor(name, input, "input");
  const { shape } = input;
  const classes = shape.at(-1) ?? 0;
  const isRows = shape.length === 1 || shape.length === 2;
  check(isRows && classes > 0, "BAD_SHAPE", name, () => `input must be [batch, classes], got [${shape}].`);
  return tidy(() => {
    const scores = widened(input);
    const besideLabels = scores.unsqueeze(-2).expand([...shape, classes]);
    const { indices } = labelIndices(name, labels, besideLabels, -1);
    const fits = String(indices.shape) === String(shape);
    check(fits, "BAD_SHAPE", name, () => `labels must be [${shape}], as the input, got [${indices.shape}].`);
    const isLabel = cumsum(indices.lt(0).to("i32"), -1).eq(0);
    const places = choose(isLabel, indices, 0);
    const own = gatherAlong(scores, places, -1).unsqueeze(-1);
    const isOther = choose(isLabel.unsqueeze(-1), oneHot(places, classes), 0).sum(-2, true).eq(0);
    const short = choose(isOther, relu(besideLabels.sub(own).add(1)), 0);
    const losses = choose(isLabel.unsqueeze(-1), short, 0).sum([-2, -1]).div(classes);
    return reduce(losses, reduction);
  });
}

export interface MultiLabelSoftMarginLossOptions {
  readonly reduction?: Reduction;
  /** One factor per class. */
  readonly weight?: Tensor;
}

/** @throws OptError BAD_ARGUMENT */
export function settledMultiLabelSoftMargin(where: string, options: MultiLabelSoftMarginLossOptions) {
  checkOptions(where, options, { reduction: "string", weight: "any" });
  const { reduction = "mean", weight } = options;
  checkReduction(where, reduction);
  if (weight !== undefined) checkTensor(where, weight, "weight");
  return { reduction, weight };
}

/**
 * The mean over the classes, the last axis, of `bceWithLogits`: each class is a label, or is not.
 *
 * @param target 1 for labels, else 0
 * @throws OptError BAD_SHAPE if the shapes differ; BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * multiLabelSoftMarginLoss(tensor([[0, 2]]), tensor([[1, 0]])); // (log 2 + log(1 + e^2)) / 2
 */
export function multiLabelSoftMarginLoss(
  input: Tensor,
  target: Tensor,
  options: MultiLabelSoftMarginLossOptions = {},
): Tensor {
  const name = "multiLabelSoftMarginLoss";
  const { reduction, weight } = settledMultiLabelSoftMargin(name, options);
  checkPair(name, input, target);
  const hasClasses = input.shape.length > 0;
  check(hasClasses, "BAD_SHAPE", name, () => "input must be [..., classes], got a number.", "Reshape it to [1].");
  checkClassWeight(name, weight, input.shape.at(-1)!);
  return tidy(() => reduce(bceWithLogits(input, target, { reduction: "none", weight }).mean(-1), reduction));
}
