/** Labels and indices out of range, told where that costs nothing: elsewhere kernels answer with NaN. */

import { activeRecorder, Segment } from "../../device/recorder";
import { check } from "../../errors/errors";
import { decode } from "../../tensor/read";
import type { Tensor } from "../../tensor/tensor";
import { byteSize } from "../../values/dtype";

/**
 * Checks indices, as they were given, on devices that share the host's memory: now, and in a recorded step before each replay that
 * finds them written. Those that the body computes itself are not known then, and kernels answer.
 *
 * @throws OptError BAD_ARGUMENT naming the first index that is neither below `count` nor `ignored`
 */
export function checkIndices(where: string, indices: Tensor, count: number, ignored?: number): void {
  const { device, storage, size, dtype } = indices;
  const { backend } = device;
  if (!backend.sharesMemory) return;
  const { memory, byteOffset } = indices.memorySlice();
  // Not of the tensor: the guard would keep it.
  const look = () =>
    checkValues(
      where,
      decode({ size, dtype }, backend.readSync!(memory, byteOffset, size * byteSize(dtype))),
      count,
      ignored,
    );
  look();
  const recorder = activeRecorder();
  if (recorder === null || recorder.parts.some((part) => part instanceof Segment && part.written.has(storage))) return;
  let seen = storage.version;
  recorder.guard(() => {
    if (seen === storage.version) return;
    look();
    seen = storage.version;
  });
}

function checkValues(where: string, values: ArrayLike<number>, count: number, ignored?: number): void {
  for (let i = 0; i < values.length; i++) {
    const index = values[i]!;
    check(
      (index >= 0 && index < count) || index === ignored,
      "BAD_ARGUMENT",
      where,
      () => `indices must be 0 to ${count - 1}${ignored === undefined ? "" : ` or ${ignored}`}, got ${index} at ${i}.`,
      "Check the data, and the size of what it points into.",
    );
  }
}
