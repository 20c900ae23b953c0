/**
 * What PyTorch gives as views and Opt copies: the forms that programs call, which mark their results. A write into one throws, and shows the
 * line to write instead. Ops call the unmarked forms, whose results nobody takes for views.
 */
import * as ops from "./ops";
import { definePrimitive } from "./ops/define-function";
import { chosenBy } from "./ops/indexing/at";
import { type Index, parseIndex } from "./ops/indexing/parse-index";
import { taken } from "./ops/shape/region";
import { selectRegion } from "./ops/shape/select";
import { exchanged, sliceRegion } from "./ops/shape/shape";
import { markCopy, markPart, markPermuted } from "./tensor/copied";
import type { Tensor } from "./tensor/tensor";
import { normalizeAxis, type Shape } from "./values/shape";

/**
 * Positions `start` to `end` (exclusive) of an axis, as a copy. Negative ones count from the end.
 *
 * @throws OptError BAD_ARGUMENT for an axis that is not there
 * @example
 * slice(tensor([1, 2, 3, 4]), 1, -1); // [2, 3]
 */
export const slice = /* @__PURE__ */ definePrimitive(
  { torch: "a[$0:$1]", tensors: ["4n"], arguments: [1, 3] },
  (x: Tensor, start: number, end?: number, axis = 0): Tensor => {
    const region = sliceRegion(x, start, end, axis);
    return markPart("slice", taken("slice", x, region), x, region.chosen);
  },
);

/**
 * The part of x at one position of an axis, without that axis, as a copy. Negative positions count from the end.
 *
 * @throws OptError BAD_ARGUMENT for an axis or a position that is not there
 * @example
 * select(tensor([[1, 2], [3, 4]]), 0, -1); // [3, 4]
 */
export const select = /* @__PURE__ */ definePrimitive(
  { torch: "a.select($0, $1)", tensors: ["nmk"], arguments: [1, -1] },
  (x: Tensor, axis: number, index: number): Tensor => {
    const region = selectRegion(x, axis, index);
    return markPart("select", taken("select", x, region), x, region.chosen);
  },
);

/**
 * What PyTorch's brackets choose, as a copy. Each index is for one axis, from the first on: a position drops its axis, [start, end, step]
 * is a range, null keeps an axis, an i32 tensor picks positions, and a boolean mask stands for as many axes as it has. Positions may count
 * from the end. Several tensors broadcast; their axes come first in the result if others are between them. An index out of range throws
 * where the device shares the host's memory, and gives NaN elsewhere.
 *
 * @throws OptError BAD_ARGUMENT for positions that are not there, or more indices than axes; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH;
 * of masks, NOT_SYNC where the device can't be read without waiting, and UNSUPPORTED in a compiled function
 * @example
 * const x = tensor([[1, 2, 3], [4, 5, 6]]);
 * at(x, null, 1); // [2, 5], x[:, 1]
 * at(x, 0, [0, 3, 2]); // [1, 3], x[0, 0:3:2]
 * at(x, tensor([1, 0], { dtype: "i32" }), tensor([2, 2], { dtype: "i32" })); // [6, 3]
 */
export const at = /* @__PURE__ */ definePrimitive(
  { torch: "a[$0, 1:3]", tensors: ["n4"], arguments: [0, [1, 3]] },
  (x: Tensor, ...index: readonly Index[]): Tensor => {
    const parsed = parseIndex("at", x, index);
    const part = chosenBy(x, parsed);
    // Index tensors copy in PyTorch, too.
    return parsed.picks.length > 0 ? part : markPart("at", part, x, parsed.region.chosen);
  },
);

/**
 * Pieces of an axis, as copies: of one size, of which the last may be less, or of the sizes that are listed.
 *
 * @throws OptError BAD_ARGUMENT for sizes that do not add up to the extent
 * @example
 * const [query, key, value] = split(zeros([2, 12]), 4, -1); // each [2, 4]
 */
export const split = /* @__PURE__ */ definePrimitive(
  { torch: "a.split($0, $1)", tensors: ["nmk"], arguments: [2, 1] },
  (x: Tensor, sizes: number | readonly number[], axis = 0): Tensor[] => {
    return ops.split(x, sizes, axis, slice);
  },
);

/**
 * At most `chunks` pieces of an axis, as copies: of equal size, of which the last may be less.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * chunk(zeros([5]), 2); // [3] and [2]
 */
export const chunk = /* @__PURE__ */ definePrimitive(
  { torch: "a.chunk($0, $1)", tensors: ["nmk"], arguments: [2, 1] },
  (x: Tensor, chunks: number, axis = 0): Tensor[] => {
    return ops.chunk(x, chunks, axis, slice);
  },
);

/** The axes in another order, as a copy: axis i of the result is axis `axes[i]`. @throws OptError BAD_ARGUMENT */
export const permute = /* @__PURE__ */ definePrimitive(
  { torch: "a.permute($0)", tensors: ["nmk"], arguments: [[2, 0, 1]] },
  (x: Tensor, axes: readonly number[]): Tensor => {
    const copy = ops.permute(x, axes);
    const order = axes.map((axis) => normalizeAxis("permute", axis, axes.length));
    return markPermuted("permute", copy, x, order);
  },
);

/** Two axes exchanged, as a copy: the last two by default. @throws OptError BAD_ARGUMENT */
export const transpose = /* @__PURE__ */ definePrimitive(
  { torch: "a.transpose($0, $1)", tensors: ["nmk"], arguments: [0, -1] },
  (x: Tensor, a = -2, b = -1): Tensor => {
    const order = exchanged(x, a, b);
    return markPermuted("transpose", ops.permute(x, order), x, order);
  },
);

/**
 * Stretched to a shape, as a copy: axes of extent 1 are repeated, new ones come first, -1 keeps an extent.
 *
 * @throws OptError BAD_SHAPE if x does not broadcast to it
 * @example
 * expand(tensor([[1], [2]]), [-1, 3]); // [[1, 1, 1], [2, 2, 2]]
 */
export const expand = /* @__PURE__ */ definePrimitive(
  { torch: "a.expand($0)", tensors: ["n1"], arguments: [[2, -1, 4]] },
  (x: Tensor, shape: Shape): Tensor => {
    return markCopy("expand", ops.expand(x, shape), x);
  },
);
