/** Tensors joined along a new axis, and cut into pieces. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, sameShape, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { unsqueeze } from "./extents";
import { concat, slice } from "./shape";

/**
 * Joins tensors of one shape along a new axis.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH, BAD_ARGUMENT
 * @example
 * stack([tensor([1, 2]), tensor([3, 4])]); // [[1, 2], [3, 4]]
 */
export const stack = /* @__PURE__ */ definePrimitive(
  { torch: "torch.stack([a, b], $0)", tensors: ["nm", "nm"], arguments: [1], isList: true },
  (tensors: readonly Tensor[], axis = 0): Tensor => {
    const isList = Array.isArray(tensors) && tensors.length > 0;
    check(
      isList,
      "BAD_ARGUMENT",
      "stack",
      () => `needs a list of tensors, got ${show(tensors)}.`,
      "Pass tensors: [a, b].",
    );
    for (const [i, tensor] of tensors.entries()) checkTensor("stack", tensor, `tensor ${i}`);
    const { shape } = tensors[0]!;
    const other = tensors.find((tensor) => !sameShape(tensor.shape, shape));
    check(
      other === undefined,
      "BAD_SHAPE",
      "stack",
      () => `shapes must be equal, got ${showShape(shape)} and ${showShape(other!.shape)}.`,
      "concat joins along an axis that is there.",
    );
    const along = normalizeAxis("stack", axis, shape.length + 1);
    return tidy(() =>
      concat(
        tensors.map((tensor) => unsqueeze(tensor, along)),
        along,
      ),
    );
  },
);

/** Pieces of an axis, which `take` takes: of one size, of which the last may be less, or of the sizes that are listed. @throws OptError BAD_ARGUMENT */
export function split(x: Tensor, sizes: number | readonly number[], axis = 0, take = slice): Tensor[] {
  checkTensor("split", x);
  const along = normalizeAxis("split", axis, x.shape.length);
  const extent = x.shape[along]!;
  const list = Array.isArray(sizes) ? (sizes as readonly number[]) : pieces(extent, sizes as number);
  check(
    list.every((size) => Number.isInteger(size) && size >= 0) && list.reduce((a, b) => a + b, 0) === extent,
    "BAD_ARGUMENT",
    "split",
    () => `sizes must be a positive integer, or integers that add up to ${extent}, got ${show(sizes)}.`,
    "For example 2 or [1, 3].",
  );
  let start = 0;
  return list.map((size) => {
    start += size;
    return take(x, start - size, start, along);
  });
}

/** At most `chunks` pieces of an axis, which `take` takes: of equal size, of which the last may be less. @throws OptError BAD_ARGUMENT */
export function chunk(x: Tensor, chunks: number, axis = 0, take = slice): Tensor[] {
  checkTensor("chunk", x);
  checkValue(Number.isInteger(chunks) && chunks > 0, "chunk", "chunks", "a positive integer", chunks, "For example 2.");
  const extent = x.shape[normalizeAxis("chunk", axis, x.shape.length)]!;
  return split(x, extent === 0 ? Array<number>(chunks).fill(0) : Math.ceil(extent / chunks), axis, take);
}

function pieces(extent: number, size: number): number[] {
  if (!Number.isInteger(size) || size <= 0 || extent === 0) return [extent === 0 && size > 0 ? 0 : size];
  return Array.from({ length: Math.ceil(extent / size) }, (_, i) => Math.min(size, extent - i * size));
}
