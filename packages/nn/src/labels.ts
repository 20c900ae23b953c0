/** Class labels from wherever they come: arrays are checked on the host, tensors stay on their device. */
import { type NestedArray, OptError, Tensor, tensor } from "@opt/core";

export type Labels = Tensor | Int32Array | Uint8Array | NestedArray;

/** Which rows count. */
export interface Counted {
  readonly indices: Tensor;
  /** How many rows are not ignored; unknown for tensors, which are not read. */
  readonly count: number | undefined;
}

/**
 * Labels as i32 indices of the shape of the rows.
 *
 * @throws OptError BAD_SHAPE for another count of labels; BAD_ARGUMENT for a label that is no class
 */
export function labelIndices(where: string, labels: Labels, logits: Tensor, ignoreIndex: number): Counted {
  if (labels instanceof Tensor) return { indices: labels, count: undefined };
  const classes = logits.shape.at(-1) ?? 0;
  const nested: readonly unknown[] | Int32Array | Uint8Array = labels;
  const values: ArrayLike<unknown> = Array.isArray(nested) ? nested.flat(Number.POSITIVE_INFINITY) : nested;
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    const label = values[i];
    if (label === ignoreIndex) continue;
    if (!Number.isInteger(label) || (label as number) < 0 || (label as number) >= classes) {
      throw new OptError(
        "BAD_ARGUMENT",
        where,
        `labels must be classes 0 to ${classes - 1} or ignoreIndex ${ignoreIndex}, got ${label} at ${i}.`,
        "Check the labels and the width of the logits.",
      );
    }
    count++;
  }
  const indices = tensor(labels, { dtype: "i32", shape: logits.shape.slice(0, -1), device: logits.device });
  return { indices, count };
}

/** Per row 0 where ignored, else 1, computed on the device. */
export function countedRows(indices: Tensor, ignoreIndex: number, like: Tensor): Tensor {
  return indices.to(like.dtype).sub(ignoreIndex).abs().minimum(1);
}
