/** The square, and the reciprocal of the square root. */

import { div, mul, sqrt } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { defineOp } from "./define-op";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

const SQUARE: ElementwiseDefinition = {
  forward: (x) => mul(x!, x!),
  gradients: [(g, _y, x) => mul(g, mul(2, x!))],
  autocast: "f32",
  result: "integer",
};

/**
 * x * x. Booleans give i32.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * square(tensor([2, -3])); // [4, 9]
 */
export const square = /* @__PURE__ */ definePrimitive({ torch: "a.square()" }, (x: Tensor): Tensor => {
  checkTensor("square", x);
  if (isFloat(x.dtype)) return elementwise(extended("square", SQUARE), [x]);
  return computeIn("i32", [x], x.dtype === "bool" ? "i32" : x.dtype, (whole) => elementwise("mul", [whole!, whole!]));
});

/**
 * 1 / sqrt(x). Integers give f32.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * rsqrt(tensor([4, 16])); // [0.5, 0.25]
 */
export const rsqrt = /* @__PURE__ */ defineOp({
  name: "rsqrt",
  torch: "a.rsqrt()",
  inputs: 1,
  domain: { positive: true },
  forward: (x) => div(1, sqrt(x!)),
  gradients: [(g, y) => mul(mul(-0.5, g), mul(y, mul(y, y)))],
  autocast: "f32",
});
