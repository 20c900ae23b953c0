/** Borders of one value around a tensor. */

import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { checkRange } from "../../values/literal";
import { denseStrides, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { fillInPlace } from "../map";
import { copyBox } from "./shape";

export interface PadOptions {
  /** What the border is made of. Default 0. */
  readonly value?: number;
}

/**
 * A border around the last axes: `padding` is [before, after] of the last axis, then of the one before it, and so on. Negative ones cut.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE where more is cut than there is
 * @example
 * pad(tensor([[1, 2]]), [1, 0, 0, 1]); // [[0, 1, 2], [0, 0, 0]]
 */
export function pad(x: Tensor, padding: readonly number[], options: PadOptions = {}): Tensor {
  checkTensor("pad", x);
  checkOptions("pad", options, { value: "number" });
  const { value = 0 } = options;
  checkRange("pad", [value], x.dtype);
  const rank = x.shape.length;
  check(
    Array.isArray(padding) && padding.length % 2 === 0 && padding.length <= 2 * rank && padding.every(Number.isInteger),
    "BAD_ARGUMENT",
    "pad",
    () => `padding must be up to ${rank} pairs of integers, got ${show(padding)}.`,
    "[left, right] pads the last axis, [left, right, top, bottom] the last two.",
  );
  const of = (axis: number, side: 0 | 1) => padding[2 * (rank - 1 - axis) + side] ?? 0;
  const shape = x.shape.map((extent, axis) => extent + of(axis, 0) + of(axis, 1));
  const fits = shape.every((extent) => extent >= 0);
  check(
    fits,
    "BAD_SHAPE",
    "pad",
    () => `no more can be cut than there is of ${showShape(x.shape)}, got ${show(padding)}.`,
  );
  const output = Tensor.empty(shape, x.dtype, x.device);
  if (padding.some((side) => side > 0)) fillInPlace(output, value);
  const kept = x.shape.map((extent, axis) => Math.max(extent + Math.min(of(axis, 0), 0) + Math.min(of(axis, 1), 0), 0));
  const place = (extents: readonly number[], sign: 1 | -1) => {
    const strides = denseStrides(extents);
    const starts = strides.map((stride, axis) => stride * Math.max(sign * of(axis, 0), 0));
    return { offset: starts.reduce((a, b) => a + b, 0), strides };
  };
  copyBox(x, output, kept, place(x.shape, -1), place(shape, 1));
  const back = padding.map((side) => -side);
  return record("pad", output, [x], [], (g) => [pad(g, back)]);
}
