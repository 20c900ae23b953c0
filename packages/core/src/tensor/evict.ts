/** Tensors whose memory is freed for a while, and comes back before it is used: for who can make their contents again. */
import { atEndOfCall, inEachRun } from "../device/host-code";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import { checkBody } from "../host/synchronous";
import { Tensor } from "./tensor";

/**
 * Frees the memory of a tensor, and of those that share it, until something uses it. `refill` is called then, before the use: it calls
 * `fillAgain` for the tensor, perhaps with others.
 *
 * @throws OptError BAD_ARGUMENT for a tensor that begins in the middle of its memory; DISPOSED
 * @example
 * const weight = ones([1000]);
 * const refill = () => fillAgain([weight], ([x]) => noGrad(() => x.set(ones([1000]))), true);
 * evict(weight, refill);
 * weight.sum(); // filled again
 */
export function evict(x: Tensor, refill: () => void): void {
  check(x instanceof Tensor, "BAD_ARGUMENT", "evict", () => `needs a tensor, got ${show(x)}.`);
  checkBody("evict", refill);
  x.checkAlive();
  const { storage } = x;
  if (storage.isEvicted) return;
  check(
    x.memorySlice().byteOffset === 0,
    "BAD_ARGUMENT",
    "evict",
    () => `needs a tensor with memory of its own, got shape [${x.shape}] in the middle of another's.`,
    "Use clone().",
  );
  storage.evict(refill);
}

/** True while the memory of a tensor is freed. */
export function isEvicted(x: Tensor): boolean {
  check(x instanceof Tensor, "BAD_ARGUMENT", "isEvicted", () => `needs a tensor, got ${show(x)}.`);
  return x.storage.isEvicted;
}

/**
 * Gives evicted tensors memory again, and lets `write` fill it: now, and at this point of each run of a compiled function, with the
 * tensors of that run.
 *
 * @param isSame the contents are those of before: tapes that saved them stay valid
 */
export function fillAgain(
  tensors: readonly Tensor[],
  write: (tensors: readonly Tensor[]) => void,
  isSame: boolean,
): void {
  const areTensors = Array.isArray(tensors) && tensors.every((x) => x instanceof Tensor);
  checkValue(areTensors, "fillAgain", "the tensors", "a list of tensors", tensors);
  checkBody("fillAgain", write);
  checkValue(typeof isSame === "boolean", "fillAgain", "isSame", "true or false", isSame);
  const versions = tensors.map(({ storage }) => storage.version);
  for (const { storage } of tensors) storage.reallocate();
  inEachRun(tensors, (...present) => write(present as readonly Tensor[]));
  atEndOfCall(() => {
    for (const { storage } of tensors) storage.evict();
  });
  if (isSame) for (const [i, { storage }] of tensors.entries()) storage.rewind(versions[i]!);
}
