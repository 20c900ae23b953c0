/** Axes of extent 1 dropped, added and stretched. */

import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { broadcastStrides, denseStrides, normalizeAxis, type Shape, showShape, sizeOf } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { type Axes, reducedShape, sumTo } from "../reduce/reduce";
import { copyBox } from "./copy-box";
import { reshape } from "./shape";

/**
 * Without the given axes of extent 1, or without all of them: a view. Axes of other extents stay, and all do where the list is empty.
 *
 * @throws OptError BAD_ARGUMENT for an axis that is not there
 * @example
 * squeeze(zeros([1, 3, 1])); // [3]
 */
export const squeeze = /* @__PURE__ */ definePrimitive(
  { torch: "a.squeeze($0)", arguments: ["$axis"] },
  (x: Tensor, axis?: Axes): Tensor => {
    checkTensor("squeeze", x);
    const isNone = Array.isArray(axis) && axis.length === 0;
    const axes = isNone ? [] : [...reducedShape("squeeze", x, axis, false).axes];
    return reshape(
      x,
      x.shape.filter((extent, i) => extent !== 1 || !axes.includes(i)),
    );
  },
);

/**
 * With one more axis, of extent 1, which then is axis `axis`: a view. Negative axes count from the end: -1 adds the last.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * unsqueeze(zeros([3]), -1); // [3, 1]
 */
export const unsqueeze = /* @__PURE__ */ definePrimitive(
  { torch: "a.unsqueeze($0)", arguments: ["$axis"] },
  (x: Tensor, axis: number): Tensor => {
    checkTensor("unsqueeze", x);
    return reshape(x, x.shape.toSpliced(normalizeAxis("unsqueeze", axis, x.shape.length + 1), 0, 1));
  },
);

/**
 * The axes from `start` to `end`, both included, as one: a view. By default all of them; negative ones count from the end.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there, or an end before the start
 * @example
 * flatten(zeros([2, 3, 4]), 1); // [2, 12]
 */
export const flatten = /* @__PURE__ */ definePrimitive(
  { torch: "a.flatten($0, $1)", tensors: ["nmk"], arguments: [1, 2] },
  (x: Tensor, start = 0, end = -1): Tensor => {
    checkTensor("flatten", x);
    const rank = Math.max(x.shape.length, 1); // a number alone becomes [1]
    const [first, last] = [normalizeAxis("flatten", start, rank), normalizeAxis("flatten", end, rank)];
    check(
      first <= last,
      "BAD_ARGUMENT",
      "flatten",
      () => `end must not be before start, got ${start} and ${end}.`,
      "flatten(x, 1) keeps the first axis.",
    );
    return reshape(x, x.shape.toSpliced(first, last + 1 - first, sizeOf(x.shape.slice(first, last + 1))));
  },
);

/** Stretched to a shape: axes of extent 1 are repeated, new ones come first, -1 keeps an extent. @throws OptError BAD_SHAPE */
export function expand(x: Tensor, shape: Shape): Tensor {
  const samples = overSamples(expand, x, shape);
  if (samples) return samples;
  checkTensor("expand", x);
  const missing = Array.isArray(shape) ? shape.length - x.shape.length : -1;
  const target =
    missing < 0 ? [] : shape.map((extent, i) => (extent === -1 && i >= missing ? x.shape[i - missing]! : extent));
  check(
    missing >= 0 &&
      target.every((extent, i) => {
        const own = i < missing ? 1 : x.shape[i - missing];
        return Number.isInteger(extent) && extent >= 0 && (own === 1 || own === extent);
      }),
    "BAD_SHAPE",
    "expand",
    () => `${showShape(x.shape)} must broadcast to the new shape, got ${show(shape)}.`,
    "Aligned at the end, extents must be equal, or 1 in the tensor.",
  );
  const output = Tensor.empty(target, x.dtype, x.device);
  const strides = broadcastStrides(x.shape, target);
  copyBox(x, output, target, { offset: 0, strides }, { offset: 0, strides: denseStrides(target) });
  const { shape: own } = x;
  return record("expand", output, [x], [], (g) => [sumTo(g, own)]);
}
