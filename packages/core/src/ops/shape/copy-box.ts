/** Boxes of elements copied between tensors: what most ops on shapes are. */

import type { Tensor } from "../../tensor/tensor";
import { byteSize, numbersOf } from "../../values/dtype";
import { denseStrides, type Shape } from "../../values/shape";

/** Where a box lies. Offsets and strides count elements. */
export interface Place {
  readonly offset: number;
  readonly strides: readonly number[];
}

/** Where a dense tensor lies. */
export const dense = (shape: Shape): Place => ({ offset: 0, strides: denseStrides(shape) });

/** Copies a box of `shape` between two tensors of one dtype. */
export function copyBox(source: Tensor, target: Tensor, shape: Shape, from: Place, to: Place): void {
  const slice = (tensor: Tensor, offset: number) => {
    const { memory, byteOffset, length } = tensor.memorySlice();
    const elementBytes = byteSize(tensor.dtype);
    return { memory, byteOffset: byteOffset + offset * elementBytes, length: length - offset };
  };
  source.checkAlive();
  if (shape.includes(0)) return;
  const rank0 = shape.length === 0;
  target.device.launch({
    kind: "copy",
    kernel: target.device.kernel({ kind: "copy", from: numbersOf(source.dtype)[0], to: numbersOf(target.dtype)[0] }),
    source: slice(source, from.offset),
    target: slice(target, to.offset),
    shape: rank0 ? [1] : shape,
    sourceStrides: rank0 ? [1] : from.strides,
    targetStrides: rank0 ? [1] : to.strides,
  });
}
