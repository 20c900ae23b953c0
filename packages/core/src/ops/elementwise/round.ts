/** Rounding to integers. */

import { check } from "../../errors/errors";
import { abs, add, less, neg, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { clone } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended } from "./elementwise-table";

/** Beside `whole`, from which on all numbers are integers, the fraction is rounded off. A zero keeps its sign. */
const ROUND: ElementwiseDefinition = {
  forward(x, whole) {
    const size = sub(add(abs(x!), whole!), whole!);
    const signed = where(less(x!, 0), neg(size), where(less(0, x!), size, x!));
    return where(less(abs(x!), whole!), signed, x!);
  },
  derivatives: [(g) => where(less(g, g), g, 0), null],
};

/**
 * The nearest integer, and of two as near the even one. The gradient is 0, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT; BAD_DTYPE for booleans
 * @example
 * round(tensor([0.5, 1.5, -2.6])); // [0, 2, -3]
 */
export function rounded(x: Tensor): Tensor {
  checkTensor("round", x);
  check(x.dtype !== "bool", "BAD_DTYPE", "round", () => "needs a tensor of numbers, got bool.", "Booleans are whole.");
  return isFloat(x.dtype)
    ? elementwise(extended("round", ROUND), [x, x.dtype === "f64" ? 2 ** 52 : 2 ** 23])
    : clone(x);
}
