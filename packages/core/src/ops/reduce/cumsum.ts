/** Running sums and products. */

import { tidy } from "../../device/scope";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { normalizeAxis } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { scan } from "./scan";

/**
 * Sums of each element along an axis and all before it. Integers are summed as i32.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cumsum(tensor([1, 2, 3]), 0); // [1, 3, 6]
 */
export function cumsum(x: Tensor, axis: number): Tensor {
  return along("cumsum", x, axis, (wide, at) => summed(wide, at, false));
}

/**
 * Products of each element along an axis and all before it. Integers are multiplied as i32. Zeros have gradients, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cumprod(tensor([1, 2, 3]), 0); // [1, 2, 6]
 */
export function cumprod(x: Tensor, axis: number): Tensor {
  // Its rounds are on the tape: no gradient divides by a factor.
  return along("cumprod", x, axis, (wide, at) => scan(wide, at, (a, b) => elementwise("mul", [a, b])));
}

function along(where: string, x: Tensor, axis: number, run: (wide: Tensor, axis: number) => Tensor): Tensor {
  checkTensor(where, x);
  const at = normalizeAxis(where, axis, Math.max(x.shape.length, 1));
  const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "i32";
  return computeIn(isFloat(dtype) ? computeDType(dtype) : dtype, [x], dtype, (wide) => run(wide!, at));
}

/** From the end if `reversed`: each direction is the other's adjoint. */
function summed(x: Tensor, axis: number, reversed: boolean): Tensor {
  const sums = () => scan(x, axis, (a, b) => elementwise("add", [a, b]), reversed);
  const output = noGrad(() => tidy(sums));
  return record("cumsum", output, [x], [], adjoint(axis, !reversed));
}

/** Made apart from the tensors, which a closure beside them would keep alive. */
const adjoint = (axis: number, reversed: boolean) => (g: Tensor) => [summed(g, axis, reversed)];
