/** Products over axes. */

import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { withFlatGradient } from "../flat-gradient";
import { permute, reshape, slice } from "../shape/shape";
import { runningProduct } from "./recurrence";
import { type Axes, type ReducedShape, reducedShape, sum } from "./reduce";

/**
 * The product over the given axes, or over all: 1 of nothing. Integers are multiplied as i32. Zeros have gradients, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * prod(tensor([[1, 2], [3, 4]]), 1); // [2, 12]
 */
export const prod = /* @__PURE__ */ definePrimitive(
  { torch: "a.prod($0, keepdim=$1)", arguments: ["$axis", "$flag"], domain: { nonZero: true, finite: true } },
  (x: Tensor, axis?: Axes, keepDim = false): Tensor => {
    const samples = overSamples(prod, x, axis, keepDim);
    if (samples) return samples;
    checkTensor("prod", x);
    const reduced = reducedShape("prod", x, axis, keepDim);
    const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "i32";
    return computeIn(isFloat(dtype) ? computeDType(dtype) : dtype, [x], dtype, (wide) => multiplied(wide!, reduced));
  },
);

/** The last of the running products, of which no gradient divides by a factor. */
function multiplied(factors: Tensor, { axes, shape }: ReducedShape): Tensor {
  const count = sizeOf(axes.map((axis) => factors.shape[axis]!));
  // PyTorch takes the gradient of one factor, and of none, for one that depends on it.
  const x = count <= 1 && factors.shape.length > 0 ? withFlatGradient(factors) : factors;
  if (count === 0) return reshape(elementwise("add", [sum(x, axes), 1]), shape);
  const others = x.shape.flatMap((_, axis) => (axes.includes(axis) ? [] : [axis]));
  const isFirst = axes.every((axis, i) => axis === i);
  const rows = reshape(isFirst ? x : permute(x, [...axes, ...others]), [count, sizeOf(shape)]);
  return reshape(count === 1 ? clone(rows) : slice(runningProduct(rows, 0), count - 1), shape);
}
