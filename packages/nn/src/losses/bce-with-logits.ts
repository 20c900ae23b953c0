/** Binary cross-entropy. */
import { checkOptions, checkTensor, softplus, type Tensor, tidy, widened } from "@opt/core";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface BceWithLogitsOptions {
  readonly reduction?: Reduction;
  /** A factor of each loss, which is broadcast. */
  readonly weight?: Tensor;
  /** A factor of the positive part of each loss, which is broadcast: above 1 it counts misses more than false alarms. */
  readonly posWeight?: Tensor;
}

/** @throws OptError BAD_ARGUMENT */
export function settledBceWithLogits(where: string, options: BceWithLogitsOptions) {
  checkOptions(where, options, { reduction: "string", weight: "any", posWeight: "any" });
  const { reduction = "mean", weight, posWeight } = options;
  checkReduction(where, reduction);
  if (weight !== undefined) checkTensor(where, weight, "weight");
  if (posWeight !== undefined) checkTensor(where, posWeight, "posWeight");
  return { reduction, weight, posWeight };
}

/**
 * Binary cross-entropy of logits x with targets y in [0, 1]: -w (p y log sigmoid(x) + (1 - y) log(1 - sigmoid(x))), p being `posWeight`.
 * Computed from softplus(-x), so that nothing overflows.
 *
 * @throws OptError BAD_SHAPE if the shapes differ; BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * bceWithLogits(tensor([0, 2]), tensor([1, 0])); // (log 2 + log(1 + e^2)) / 2
 */
export function bceWithLogits(input: Tensor, target: Tensor, options: BceWithLogitsOptions = {}): Tensor {
  const { reduction, weight, posWeight } = settledBceWithLogits("bceWithLogits", options);
  checkPair("bceWithLogits", input, target);
  return tidy(() => {
    const x = widened(input);
    const y = widened(target);
    const miss = softplus(x.neg(), 1, Number.POSITIVE_INFINITY); // -log sigmoid(x)
    const factor = posWeight && widened(posWeight).sub(1).mul(y).add(1);
    const losses = y
      .neg()
      .add(1)
      .mul(x)
      .add(factor === undefined ? miss : miss.mul(factor));
    return reduce(weight === undefined ? losses : losses.mul(weight), reduction);
  });
}
