/** Choosing between elements by a condition. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { applyOp, type Operand } from "../../rule/expression";
import { Tensor } from "../../tensor/tensor";
import { type DType, isFloat } from "../../values/dtype";
import { toStored } from "../../values/half";
import { checkRange } from "../../values/literal";
import { showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "./elementwise";

/**
 * `condition ? a : b`, elementwise and broadcast. The condition has no gradient.
 *
 * @throws OptError BAD_DTYPE for a condition that is not bool; BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const x = tensor([-1, 2]);
 * where(x.lt(0), 0, x); // [0, 2]
 */
export const where = /* @__PURE__ */ definePrimitive(
  { torch: "torch.where(a, b, c)", tensors: ["bool ...", "...", "..."] },
  <T extends Operand>(condition: T, a: T | number, b: T | number): T => applyOp("where", [condition, a, b]),
);

/** The same of tensors alone. */
export function chosen(condition: Tensor, a: Tensor | number, b: Tensor | number): Tensor {
  checkBool("where", condition, "the condition");
  const numbers = [a, b].filter((value) => typeof value === "number");
  const { dtype } = [a, b].find((value) => value instanceof Tensor) ?? { dtype: "i32" };
  if (numbers.every(Number.isInteger)) checkRange("where", numbers, dtype === "bool" ? "i32" : (dtype as DType));
  return elementwise("select", [condition, a, b], "where");
}

/**
 * x with `value`, a number or a tensor of shape [], where the mask is true. Mask and x are broadcast, the dtype is x's.
 *
 * @throws OptError BAD_DTYPE for a mask that is not bool; BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const scores = tensor([1, 2, 3]);
 * maskedFill(scores, scores.gt(2), -Infinity); // [1, 2, -Infinity]
 */
export const maskedFill = /* @__PURE__ */ definePrimitive(
  { torch: "a.masked_fill(b, c)", tensors: ["nm", "bool nm", ""] },
  (x: Tensor, mask: Tensor, value: Tensor | number): Tensor => {
    checkTensor("maskedFill", x);
    checkBool("maskedFill", mask, "the mask");
    check(
      typeof value === "number" || (value instanceof Tensor && value.shape.length === 0),
      "BAD_ARGUMENT",
      "maskedFill",
      () =>
        `value must be a number or a tensor of shape [], got ${value instanceof Tensor ? `shape ${showShape(value.shape)}` : show(value)}.`,
      "where(mask, a, b) chooses among the elements of tensors.",
    );
    return tidy(() => {
      if (typeof value === "number") checkRange("maskedFill", [value], x.dtype);
      else return elementwise("select", [mask, cast(value, x.dtype), x], "maskedFill");
      return cast(elementwise("select", [mask, isFloat(x.dtype) ? value : toStored(x.dtype)(value), x]), x.dtype);
    });
  },
);

export function checkBool(where: string, value: unknown, name: string): asserts value is Tensor {
  checkTensor(where, value, name);
  const { dtype } = value;
  check(dtype === "bool", "BAD_DTYPE", where, () => `${name} must be bool, got ${dtype}.`, "Compare: x.ne(0).");
}
