/** Losses of an input and a target that have one shape. */
import { check, checkTensor, type Tensor } from "@opt/core";

/** @throws OptError BAD_SHAPE if the shapes differ: nothing is broadcast */
export function checkPair(where: string, input: Tensor, target: Tensor): void {
  checkTensor(where, input, "input");
  checkTensor(where, target, "target");
  check(
    input.shape.length === target.shape.length && input.shape.every((extent, i) => extent === target.shape[i]),
    "BAD_SHAPE",
    where,
    () => `input and target must have the same shape, got [${input.shape}] and [${target.shape}].`,
    "Reshape one of them.",
  );
}
