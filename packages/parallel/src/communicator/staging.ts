/** Elements of tensors as bytes that travel: where they lie on devices that work in the host's memory, else copies that come and go. */
import {
  check,
  checkTensor,
  empty,
  hostBytes,
  keep,
  noGrad,
  OptError,
  RowSparse,
  show,
  Tensor,
  tensorFromBytes,
} from "@opt/core";
import { byteSize } from "@opt/core/backend";

/** @throws OptError BAD_ARGUMENT, DISPOSED, UNSUPPORTED */
export function checkDense(where: string, x: unknown): asserts x is Tensor {
  const isTensor = x instanceof Tensor;
  check(isTensor, "BAD_ARGUMENT", where, () => `needs a tensor, got ${show(x)}.`, "Make one with tensor(data).");
  checkTensor(where, x, "the tensor");
  const isDense = !(x instanceof RowSparse);
  check(isDense, "UNSUPPORTED", where, () => "a row-sparse tensor cannot travel.", "Use toDense().");
}

/** The elements as stored, not to be changed: at once where the device answers at once. */
export function bytesOf(x: Tensor): Uint8Array | Promise<Uint8Array> {
  const own = hostBytes(x, "read");
  if (own !== undefined) return own;
  try {
    return x.bytesSync();
  } catch (error) {
    if (error instanceof OptError && error.code === "NOT_SYNC") return x.bytes();
    throw error;
  }
}

/** @throws OptError NOT_SYNC */
export function bytesNow(where: string, x: Tensor): Uint8Array {
  checkReadsNow(where, x);
  return bytesOf(x) as Uint8Array;
}

/** @throws OptError NOT_SYNC where the device of a tensor cannot be read without waiting */
export function checkReadsNow(where: string, { device }: Tensor): void {
  check(
    device.backend.readSync !== undefined,
    "NOT_SYNC",
    where,
    () => `${device.name} cannot be read without waiting.`,
    "What is divided between ranks computes on js, wasm or cpu.",
  );
}

/** Room for elements that will come, and what puts them into the tensor once they are there. */
export interface ReceiveBuffer {
  readonly bytes: Uint8Array;
  done(): void;
}

export function receiveBuffer(x: Tensor): ReceiveBuffer {
  const bytes = hostBytes(x, "write");
  if (bytes !== undefined) return { bytes, done() {} };
  const copy = new Uint8Array(x.size * byteSize(x.dtype));
  return { bytes: copy, done: () => overwrite(x, copy) };
}

export function overwrite(x: Tensor, bytes: Uint8Array): void {
  const own = hostBytes(x, "write");
  if (own !== undefined) {
    own.set(bytes);
    return;
  }
  noGrad(() => {
    const copy = tensorFromBytes(bytes, x.shape, { dtype: x.dtype, device: x.device });
    x.set(copy);
    copy.dispose();
  });
}

/** Of operations that were given up: their engine may still read there, or write. */
const abandoned: Tensor[] = [];

/** Memory that is never used again; whoever disposes one of these leaves it here. */
export function abandon(rooms: readonly Tensor[]): void {
  abandoned.push(...rooms.map((room) => keep(room.detach())));
}

/** What `moved` says; where it fails, the memory of `rooms` is abandoned. */
export async function movedIn<Result>(rooms: readonly Tensor[], moved: Promise<Result>): Promise<Result> {
  try {
    return await moved;
  } catch (error) {
    abandon(rooms);
    throw error;
  }
}

/** A new tensor that no tidy frees, with room for elements that will come. */
export function roomLike(x: Tensor, shape: readonly number[]): Tensor {
  return keep(empty(shape, { dtype: x.dtype, device: x.device }));
}
