/** Overwriting a tensor with data or another tensor. */
import { check } from "../errors";
import { flatten, type TensorData } from "../literal";
import { type Shape, sameShape, showShape } from "../shape";
import { Tensor } from "../tensor";
import { assign } from "./cast";

/** Tensor.set. @throws OptError BAD_SHAPE if the count differs */
export function overwrite(target: Tensor, data: TensorData | Tensor): void {
  const slice = target.memorySlice();
  if (data instanceof Tensor) {
    checkFits(target, data.shape);
    assign(target, data);
    target.storage.overwritten();
    return;
  }
  const { elements, shape } = flatten("set", data, target.dtype);
  const isFlat = ArrayBuffer.isView(data) || typeof data === "number";
  if (!isFlat || elements.length !== slice.length) checkFits(target, shape);
  target.storage.overwritten();
  const bytes = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
  target.device.write(slice, bytes);
}

function checkFits(target: Tensor, shape: Shape): void {
  check(
    sameShape(shape, target.shape),
    "BAD_SHAPE",
    "set",
    () => `needs data of shape ${showShape(target.shape)}, got ${showShape(shape)}.`,
    "The shape of a tensor never changes.",
  );
}
