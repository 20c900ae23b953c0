/** Reading tensors back to the host. */

import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { type Bytes, byteSize, numbersOf, type TypedArray, viewElements } from "../values/dtype";
import { widen } from "../values/half";
import { showShape } from "../values/shape";
import { checkWritable } from "./copied";
import { Tensor } from "./tensor";

/** Throws before there is a promise: one that rejects, and that nobody awaits, would end the process. @throws OptError UNSUPPORTED */
export function readBytes(x: Tensor): Promise<Bytes> {
  x.device.checkReadable();
  return copyBytes(x);
}

/** Every device hands out a copy in memory of its own. */
async function copyBytes(x: Tensor): Promise<Bytes> {
  const { memory, byteOffset } = x.memorySlice();
  const read = x.device.backend.read(memory, byteOffset, x.size * byteSize(x.dtype));
  return (await x.device.pool.relieve(read)) as Bytes;
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

/** Copies the bytes of a tensor, on a device that answers at once. @throws OptError NOT_SYNC */
export function readInto(x: Tensor, bytes: Uint8Array): void {
  const { memory, byteOffset } = x.memorySlice();
  const { backend } = x.device;
  if (backend.readInto !== undefined) backend.readInto(memory, byteOffset, bytes);
  else bytes.set(hostBytes(x, "read") ?? readBytesSync(x));
}

/** Stored bytes of a tensor as its elements. */
export function decode({ size, dtype }: Pick<Tensor, "size" | "dtype">, bytes: Uint8Array): TypedArray {
  return widen(viewElements(bytes.buffer, bytes.byteOffset, size, dtype), dtype);
}

/**
 * A tensor's own bytes, without a copy: little-endian, row-major. undefined on devices with memory of their own. Valid until the tensor is disposed.
 *
 * @param access "write" counts as an overwrite of the tensor, at this moment
 * @throws OptError DISPOSED, BAD_ARGUMENT; BAD_STATE to write into a copy such as the result of slice
 */
export function hostBytes(x: Tensor, access: "read" | "write"): Uint8Array | undefined {
  check(x instanceof Tensor, "BAD_ARGUMENT", "hostBytes", () => `needs a tensor, got ${show(x)}.`);
  const isAccess = access === "read" || access === "write";
  checkValue(isAccess, "hostBytes", "access", '"read" or "write"', access);
  x.device.checkReadable();
  const { memory, byteOffset } = x.memorySlice();
  if (access === "write") checkWritable("hostBytes", x);
  const bytes = x.device.backend.hostView?.(memory, byteOffset, x.size * byteSize(x.dtype));
  if (bytes !== undefined && access === "write") x.storage.overwritten();
  return bytes;
}

export function checkSingle(where: string, x: Tensor): void {
  const isOne = x.size * numbersOf(x.dtype)[1] === 1;
  check(
    isOne,
    "BAD_SHAPE",
    where,
    () => `needs one real element, got ${x.dtype} ${showShape(x.shape)}.`,
    "Reduce it first, or use data().",
  );
}
