/** Overwriting a tensor with data or another tensor. */

import { check } from "../errors/errors";
import { checkWritable } from "../tensor/copied";
import { isTaping } from "../tensor/tape";
import { TapeNode } from "../tensor/tape-node";
import { Tensor } from "../tensor/tensor";
import { flatten, type TensorData } from "../values/literal";
import { type Shape, sameShape, showShape } from "../values/shape";
import { copyFrom } from "./cast";

/** Tensor.set. @throws OptError BAD_SHAPE if the count differs; BAD_STATE for a copy such as the result of slice; BAD_ARGUMENT if the tape would go on to take it for what it was computed as */
export function overwrite(target: Tensor, data: TensorData | Tensor): void {
  const slice = target.memorySlice();
  checkWritable("set", target, data);
  if (isTaping()) checkNotComputed(target);
  if (data instanceof Tensor) {
    checkFits(target, data.shape);
    copyFrom(target, data);
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

/** The tape would go on to take it for what it was computed as. Views of leaves stay what they are. */
function checkNotComputed({ node }: Tensor): void {
  while (node?.isView) {
    const [viewed] = node.inputs;
    node = viewed instanceof TapeNode ? viewed : null;
  }
  check(
    node === null || node.isFreed,
    "BAD_ARGUMENT",
    "set",
    () =>
      `only leaves and their views can be overwritten, got the result of ${node!.name}, which is still to be differentiated.`,
    "Set a detach() or clone() of it, or use noGrad.",
  );
}
