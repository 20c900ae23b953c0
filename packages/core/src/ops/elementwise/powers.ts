/** The square, and the reciprocal of the square root. */

import { div, mul, sqrt } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended } from "./elementwise-table";

const SQUARE: ElementwiseDefinition = {
  forward: (x) => mul(x!, x!),
  derivatives: [(g, _y, x) => mul(g, mul(2, x!))],
};

const RSQRT: ElementwiseDefinition = {
  forward: (x) => div(1, sqrt(x!)),
  derivatives: [(g, y) => mul(mul(-0.5, g), mul(y, mul(y, y)))],
  result: "float",
};

/**
 * x * x. Booleans give i32.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * square(tensor([2, -3])); // [4, 9]
 */
export function square(x: Tensor): Tensor {
  checkTensor("square", x);
  if (isFloat(x.dtype)) return elementwise(extended("square", SQUARE), [x]);
  return computeIn("i32", [x], x.dtype === "bool" ? "i32" : x.dtype, (whole) => elementwise("mul", [whole!, whole!]));
}

/**
 * 1 / sqrt(x). Integers give f32.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * rsqrt(tensor([4, 16])); // [0.5, 0.25]
 */
export function rsqrt(x: Tensor): Tensor {
  checkTensor("rsqrt", x);
  return elementwise(extended("rsqrt", RSQRT), [x]);
}
