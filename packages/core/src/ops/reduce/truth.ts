/** Whether elements are true: all that are not 0 are, NaN too. */

import { tidy } from "../../device/scope";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { eq, ne } from "../elementwise/logic";
import { type Axes, reducedShape, sum } from "./reduce";

/**
 * Whether one element along the axes, or of all, is true, as bool: none of nothing is.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * any(tensor([[0, 0], [0, 3]]), 1); // [false, true]
 */
export const anyTrue = /* @__PURE__ */ definePrimitive(
  { torch: "a.any($0, keepdim=$1)", arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    return counted("any", ne, x, axis, keepDim);
  },
);

/**
 * Whether every element along the axes, or of all, is true, as bool: all of nothing are.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * all(tensor([[1, 0], [2, 3]]), 1); // [false, true]
 */
export const allTrue = /* @__PURE__ */ definePrimitive(
  { torch: "a.all($0, keepdim=$1)", arguments: ["$axis", "$flag"] },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    return counted("all", eq, x, axis, keepDim);
  },
);

/** eq: whether the count of zeros is 0; ne: whether that of others is not. */
function counted(where: string, op: typeof eq, x: Tensor, axis: Axes, keepDim: boolean): Tensor {
  checkTensor(where, x);
  reducedShape(where, x, axis, keepDim);
  // Over no axes each element is its own answer, as in PyTorch.
  if (Array.isArray(axis) && axis.length === 0) return noGrad(() => ne(x, 0));
  return noGrad(() => tidy(() => op(sum(op(x, 0), axis, keepDim), 0)));
}
