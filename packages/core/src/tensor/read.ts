/** Reading tensors back to the host. */

import { check } from "../errors/errors";
import { type Bytes, byteSize, type TypedArray, viewElements } from "../values/dtype";
import { widen } from "../values/half";
import { showShape } from "../values/shape";
import type { Tensor } from "./tensor";

/** Every device hands out a copy in memory of its own. */
export async function readBytes(x: Tensor): Promise<Bytes> {
  x.device.checkReadable();
  const { memory, byteOffset } = x.memorySlice();
  return (await x.device.backend.read(memory, byteOffset, x.size * byteSize(x.dtype))) as Bytes;
}

/** @throws OptError NOT_SYNC */
export function readBytesSync(x: Tensor): Bytes {
  const { device } = x;
  device.checkReadable();
  const { memory, byteOffset } = x.memorySlice();
  const { backend } = device;
  check(
    backend.readSync !== undefined,
    "NOT_SYNC",
    "dataSync",
    () => `${device.name} cannot be read without waiting.`,
    "Use await data().",
  );
  return backend.readSync(memory, byteOffset, x.size * byteSize(x.dtype)) as Bytes;
}

/** Stored bytes of a tensor as its elements. */
export function decode({ size, dtype }: Tensor, bytes: Uint8Array): TypedArray {
  return widen(viewElements(bytes.buffer, bytes.byteOffset, size, dtype), dtype);
}

export function checkSingle(where: string, x: Tensor): void {
  check(
    x.size === 1,
    "BAD_SHAPE",
    where,
    () => `needs one element, got shape ${showShape(x.shape)}.`,
    "Reduce it first, or use data().",
  );
}
