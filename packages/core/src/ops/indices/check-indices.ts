/** Labels and indices out of range, told where that costs nothing: elsewhere kernels answer with NaN. */

import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { lookAtInput } from "../look-at";

/** @throws OptError BAD_DTYPE unless indices are i32: booleans choose by `maskedSelect`, and bytes are data */
export function checkIndexDType(where: string, { dtype }: Tensor, name = "indices"): void {
  const cure = dtype === "bool" ? "maskedSelect(x, mask) chooses by a mask." : 'Cast with to("i32").';
  check(dtype === "i32", "BAD_DTYPE", where, () => `${name} must be i32, got ${dtype}.`, cure);
}

/**
 * Checks indices, as they were given, on devices that share the host's memory: now, and before each run of a compiled function.
 * Those that the function computes itself are not known then, and kernels answer with NaN.
 *
 * @throws OptError BAD_ARGUMENT naming the first index that is neither below `count` nor `ignored`
 */
export function checkIndices(where: string, indices: Tensor, count: number, ignored?: number): void {
  lookAtInput(indices, (values) => checkValues(where, values, count, ignored));
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

/** The same for positions that may count from the end, as PyTorch's brackets take them. */
export function checkPositions(where: string, positions: Tensor, extent: number): void {
  lookAtInput(positions, (values) => {
    for (let i = 0; i < values.length; i++) {
      const position = values[i]!;
      check(
        position >= -extent && position < extent,
        "BAD_ARGUMENT",
        where,
        () => `positions must be ${-extent} to ${extent - 1}, got ${position} at ${i}.`,
        "Check the data, and the size of what it points into.",
      );
    }
  });
}
