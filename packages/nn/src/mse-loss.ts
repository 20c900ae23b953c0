import { OptError, type Tensor } from "@opt/core";
import { checkReduction, type Reduction } from "./reduction";

export interface MseLossOptions {
  readonly reduction?: Reduction;
}

/**
 * Squared error: the mean (or sum) of (input - target)^2, or each of them.
 *
 * @throws OptError BAD_SHAPE if the shapes differ (nothing is broadcast); BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const input = parameter([1, 2, 3]);
 * mseLoss(input, tensor([1, 2, 5])).backward(); // input.grad: [0, 0, -4/3]
 */
export function mseLoss(input: Tensor, target: Tensor, { reduction = "mean" }: MseLossOptions = {}): Tensor {
  checkReduction("mseLoss", reduction);
  if (input.shape.length !== target.shape.length || input.shape.some((extent, i) => extent !== target.shape[i])) {
    throw new OptError(
      "BAD_SHAPE",
      "mseLoss",
      `input and target must have the same shape, got [${input.shape}] and [${target.shape}].`,
      "Reshape one of them.",
    );
  }
  const difference = input.sub(target);
  const squares = difference.mul(difference);
  if (reduction === "none") return squares;
  return reduction === "sum" ? squares.sum() : squares.mean();
}
