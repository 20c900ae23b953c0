/** Class labels from wherever they come: arrays are checked on the host, tensors stay on their device. */
import { check, checkTensor, type NestedArray, type Shape, show, Tensor, tensor } from "@opt/core";

export type Labels = Tensor | Int32Array | Uint8Array | NestedArray;

/** Which rows count. */
export interface CountedLabels {
  readonly indices: Tensor;
  /** How many rows are not ignored; unknown for tensors, which are not read. */
  readonly count: number | undefined;
}

/**
 * Labels as indices of the shape of the rows.
 *
 * @throws OptError BAD_SHAPE for another count of labels; BAD_ARGUMENT for a label that is no class
 */
export function labelIndices(where: string, labels: Labels, logits: Tensor, ignoreIndex: number): CountedLabels {
  const isArray = Array.isArray(labels) || (ArrayBuffer.isView(labels) && !(labels instanceof DataView));
  if (!isArray) {
    const isTensor = labels instanceof Tensor;
    check(
      isTensor,
      "BAD_ARGUMENT",
      where,
      () => `labels must be a list or a Tensor, got ${show(labels)}.`,
      "Pass one class per row of logits: [0].",
    );
    checkTensor(where, labels, "labels");
    // As PyTorch: bytes are classes, as files of labels have them; booleans are not.
    const isClass = labels.dtype === "i32" || labels.dtype === "u8";
    check(
      isClass,
      "BAD_DTYPE",
      where,
      () => `labels must be i32 or u8, got ${labels.dtype}.`,
      'Cast with labels.to("i32").',
    );
    return { indices: labels.to("i32"), count: undefined };
  }
  const classes = logits.shape.at(-1) ?? 0;
  const values: ArrayLike<unknown> = Array.isArray(labels) ? (labels as unknown[]).flat(64) : (labels as Int32Array);
  let count = 0;
  for (let i = 0; i < values.length; i++) {
    const label = values[i] as number;
    if (label === ignoreIndex) continue;
    check(
      Number.isInteger(label) && label >= 0 && label < classes,
      "BAD_ARGUMENT",
      where,
      () => `labels must be classes 0 to ${classes - 1} or ignoreIndex ${ignoreIndex}, got ${show(label)} at ${i}.`,
      "Check the labels and the width of the logits.",
    );
    count++;
  }
  const rows: Shape = logits.shape.slice(0, -1);
  const isNested = Array.isArray(labels) && labels.some(Array.isArray);
  const needed = rows.reduce((product, extent) => product * extent, 1);
  check(
    isNested || values.length === needed,
    "BAD_SHAPE",
    where,
    () => `labels must be one per row of logits [${logits.shape}], ${needed}, got ${values.length}.`,
    "Pass class indices, the last axis of logits being the classes.",
  );
  const { device } = logits;
  return { indices: tensor(labels, { dtype: "i32", device, ...(isNested ? {} : { shape: rows }) }), count };
}

/** Per row 0 where ignored, else 1, in a dtype that tells all classes apart. */
export function countedRows(indices: Tensor, ignoreIndex: number, dtype: "f32" | "f64"): Tensor {
  return indices.to(dtype).sub(ignoreIndex).abs().minimum(1);
}

/** The axis of the classes moved to the end. @throws OptError BAD_ARGUMENT */
export function classesLast(where: string, x: Tensor, axis: number): Tensor {
  const rank = x.shape.length;
  check(
    Number.isInteger(axis) && axis >= -rank && axis < rank,
    "BAD_ARGUMENT",
    where,
    () => `axis must be an integer from ${-rank} to ${rank - 1}, got ${show(axis)}.`,
    "-1 is the last, 1 is where PyTorch has the classes.",
  );
  const along = axis < 0 ? axis + rank : axis;
  if (along === rank - 1) return x;
  return x.permute([...x.shape.keys()].filter((i) => i !== along).concat(along));
}

/** @throws OptError BAD_SHAPE */
export function checkClassWeight(where: string, weight: Tensor | undefined, classes: number): void {
  if (weight === undefined) return;
  checkTensor(where, weight, "weight");
  check(
    weight.shape.length === 1 && weight.size === classes,
    "BAD_SHAPE",
    where,
    () => `weight must be [${classes}], one factor per class, got [${weight.shape}].`,
    "Check the number of classes.",
  );
}
