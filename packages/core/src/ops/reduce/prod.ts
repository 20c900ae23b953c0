/** Products over axes. */

import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { sizeOf } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { clone, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { concat, permute, reshape, slice } from "../shape/shape";
import { type Axes, type ReducedShape, reducedShape, sum } from "./reduce";

/**
 * The product over the given axes, or over all: 1 of nothing. Integers are multiplied as i32. Zeros have gradients, as in PyTorch.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * prod(tensor([[1, 2], [3, 4]]), 1); // [2, 12]
 */
export function prod(x: Tensor, axis?: Axes, keepDim = false): Tensor {
  checkTensor("prod", x);
  const reduced = reducedShape("prod", x, axis, keepDim);
  const dtype = isFloat(x.dtype) ? widenedDType(x.dtype) : "i32";
  return computeIn(isFloat(dtype) ? computeDType(dtype) : dtype, [x], dtype, (wide) => multiplied(wide!, reduced));
}

/** In halves, whose products are on the tape: no gradient divides by a factor. */
function multiplied(x: Tensor, { axes, shape }: ReducedShape): Tensor {
  const others = x.shape.flatMap((_, axis) => (axes.includes(axis) ? [] : [axis]));
  const isFirst = axes.every((axis, i) => axis === i);
  const first = isFirst ? x : permute(x, [...axes, ...others]);
  const count = sizeOf(axes.map((axis) => x.shape[axis]!));
  if (count === 0) return reshape(elementwise("add", [sum(x, axes), 1]), shape);
  let rest = reshape(first, [count, sizeOf(shape)]);
  for (let extent = count; extent > 1; extent = Math.ceil(extent / 2)) {
    const half = Math.floor(extent / 2);
    const product = elementwise("mul", [slice(rest, 0, half), slice(rest, half, 2 * half)]);
    rest = extent % 2 === 0 ? product : concat([product, slice(rest, extent - 1)]);
  }
  const result = reshape(rest, shape);
  return count === 1 ? clone(result) : result;
}
