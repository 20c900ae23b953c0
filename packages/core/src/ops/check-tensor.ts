/** Checks that operands are tensors. JavaScript callers may pass anything. */

import { isTensor } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { OptError } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";

/** Checks that a value is a tensor of any copy of core, neither complex nor disposed. @throws OptError BAD_ARGUMENT, BAD_DTYPE, DISPOSED */
export function checkTensor(where: string, value: unknown, name = "x"): asserts value is Tensor {
  checkAnyTensor(where, value, name);
  checkReal(where, value);
}

/** The same, but for complex ones. @throws OptError BAD_ARGUMENT, DISPOSED */
export function checkAnyTensor(where: string, value: unknown, name = "x"): asserts value is Tensor {
  const found = typeof value === "object" && value !== null && isTensor in value;
  checkValue(found, where, name, "a Tensor", value, "Make one with tensor(data).");
  (value as Tensor).checkAlive(); // before an op allocates what it would leave behind
}

/** @throws OptError BAD_DTYPE */
export function checkReal(where: string, { dtype }: Tensor): void {
  if (dtype !== "c64") return; // each op asks: a closure for the error would be garbage
  throw new OptError("BAD_DTYPE", where, "needs real numbers, got c64.", "Use viewAsReal(x), and viewAsComplex(y).");
}
