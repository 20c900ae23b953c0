/** Binary cross-entropy of probabilities. */
import { binaryCrossEntropyTerms, checkOptions, checkTensor, type Tensor, tidy, widened } from "@opt/core";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface BinaryCrossEntropyOptions {
  readonly reduction?: Reduction;
  /** A factor of each loss, which is broadcast. */
  readonly weight?: Tensor;
}

/** @throws OptError BAD_ARGUMENT */
export function settledBinaryCrossEntropy(where: string, options: BinaryCrossEntropyOptions) {
  checkOptions(where, options, { reduction: "string", weight: "any" });
  const { reduction = "mean", weight } = options;
  checkReduction(where, reduction);
  if (weight !== undefined) checkTensor(where, weight, "weight");
  return { reduction, weight };
}

/**
 * Binary cross-entropy of probabilities p with targets y in [0, 1]: -w (y log p + (1 - y) log(1 - p)).
 * Logarithms are at least -100, as PyTorch's. From logits, `bceWithLogits` is more exact.
 *
 * @throws OptError BAD_SHAPE if the shapes differ; BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * binaryCrossEntropy(tensor([0.5, 0.9]), tensor([1, 0])); // (log 2 - log 0.1) / 2
 */
export function binaryCrossEntropy(input: Tensor, target: Tensor, options: BinaryCrossEntropyOptions = {}): Tensor {
  const { reduction, weight } = settledBinaryCrossEntropy("binaryCrossEntropy", options);
  checkPair("binaryCrossEntropy", input, target);
  return tidy(() => {
    const losses = binaryCrossEntropyTerms(widened(input), target);
    return reduce(weight === undefined ? losses : losses.mul(weight), reduction);
  });
}
