/** Linear interpolation. */

import { abs, add, less, mul, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { checkTensor } from "../check-tensor";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended } from "./elementwise-table";

/** From the nearer end, so that weight 1 gives `end` exactly. */
const LERP: ElementwiseDefinition = {
  forward(start, end, weight) {
    const span = sub(end!, start!);
    const fromEnd = sub(end!, mul(span, sub(1, weight!)));
    return where(less(abs(weight!), 0.5), add(start!, mul(weight!, span)), fromEnd);
  },
  derivatives: [
    (g, _y, _start, _end, weight) => mul(g, sub(1, weight!)),
    (g, _y, _start, _end, weight) => mul(g, weight!),
    (g, _y, start, end) => mul(g, sub(end!, start!)),
  ],
  result: "float",
};

/**
 * start + weight * (end - start), elementwise and broadcast. The weight is a number or a tensor; integers give f32.
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * lerp(tensor([0, 10]), tensor([1, 20]), 0.25); // [0.25, 12.5]
 */
export function lerp(start: Tensor, end: Tensor, weight: Tensor | number): Tensor {
  checkTensor("lerp", start, "start");
  checkTensor("lerp", end, "end");
  return elementwise(extended("lerp", LERP), [start, end, weight]);
}
