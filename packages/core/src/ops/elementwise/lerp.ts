/** Linear interpolation. */
import { abs, add, less, mul, sub, where } from "../../rule/symbols";
import { defineOp } from "./define-op";

/**
 * start + weight * (end - start), elementwise and broadcast. The weight is a number or a tensor; integers give f32.
 *
 * @example
 * lerp(tensor([0, 10]), tensor([1, 20]), 0.25); // [0.25, 12.5]
 */
export const lerp = /* @__PURE__ */ defineOp({
  name: "lerp",
  torch: "torch.lerp(a, b, c)",
  inputs: 3,
  // From the nearer end, so that weight 1 gives `end` exactly.
  forward(start, end, weight) {
    const span = sub(end!, start!);
    const fromEnd = sub(end!, mul(span, sub(1, weight!)));
    return where(less(abs(weight!), 0.5), add(start!, mul(weight!, span)), fromEnd);
  },
  gradients: [
    (g, _y, _start, _end, weight) => mul(g, sub(1, weight!)),
    (g, _y, _start, _end, weight) => mul(g, weight!),
    (g, _y, start, end) => mul(g, sub(end!, start!)),
  ],
});
