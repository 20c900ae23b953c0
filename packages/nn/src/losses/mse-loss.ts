import { checkOptions, type Tensor, tidy, widened } from "@opt/core";
import { checkPair } from "./pair";
import { checkReduction, type Reduction, reduce } from "./reduction";

export interface MseLossOptions {
  readonly reduction?: Reduction;
}

/** @throws OptError BAD_ARGUMENT */
export function settledMse(where: string, options: MseLossOptions) {
  checkOptions(where, options, { reduction: "string" });
  const { reduction = "mean" } = options;
  checkReduction(where, reduction);
  return { reduction };
}

/**
 * Squared error: the mean (or sum) of (input - target)^2, or each of them.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const input = parameter([1, 2, 3]);
 * mseLoss(input, tensor([1, 2, 5])).backward(); // input.grad: [0, 0, -4/3]
 */
export function mseLoss(input: Tensor, target: Tensor, options: MseLossOptions = {}): Tensor {
  const { reduction } = settledMse("mseLoss", options);
  checkPair("mseLoss", input, target);
  return tidy(() => {
    const difference = widened(input).sub(target);
    return reduce(difference.mul(difference), reduction);
  });
}
