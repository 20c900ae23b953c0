/** Labels and indices out of range, told where that costs nothing: elsewhere kernels answer with NaN. */

import { activeRecorder } from "../../device/recorder";
import { check } from "../../errors/errors";
import { decode, readBytesSync } from "../../tensor/read";
import type { Tensor } from "../../tensor/tensor";

/**
 * Checks i32 indices on devices that share the host's memory, but for a step that is being recorded: its replays have other ones.
 *
 * @throws OptError BAD_ARGUMENT naming the first index that is neither below `count` nor `ignored`
 */
export function checkIndices(where: string, indices: Tensor, count: number, ignored?: number): void {
  const recorder = activeRecorder();
  if (!indices.device.backend.sharesMemory || (recorder !== null && !recorder.isPaused)) return;
  const values = decode(indices, readBytesSync(indices));
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
