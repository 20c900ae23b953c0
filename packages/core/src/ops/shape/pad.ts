/** Borders around a tensor. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { checkRange } from "../../values/literal";
import { denseStrides, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { withFlatGradient } from "../flat-gradient";
import { fillInPlace } from "../map";
import { copyBox } from "./copy-box";
import { concat, reshape, slice } from "./shape";

export type PadMode = "constant" | "reflect" | "replicate" | "circular";

export interface PadOptions {
  /** What the border is made of: `value`, the mirrored tensor without its edge, its edge, or its other end. Default "constant". */
  readonly mode?: PadMode;
  /** The value of a constant border. Default 0. */
  readonly value?: number;
}

/** Which element of an axis stands at a place beyond its ends. */
const PLACES: Readonly<Record<Exclude<PadMode, "constant">, (at: number, extent: number) => number>> = {
  reflect: (at, extent) => (at < 0 ? -at : 2 * (extent - 1) - at),
  replicate: (at, extent) => Math.min(Math.max(at, 0), extent - 1),
  circular: (at, extent) => (at + extent) % extent,
};

/**
 * A border around the last axes: `padding` is [before, after] of the last axis, then of the one before it, and so on. Negative ones cut.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE if more is cut than there is
 * @example
 * pad(tensor([[1, 2]]), [1, 0, 0, 1]); // [[0, 1, 2], [0, 0, 0]]
 * pad(tensor([[1, 2, 3]]), [2, 1], { mode: "reflect" }); // [[3, 2, 1, 2, 3, 2]]
 */
export const pad = /* @__PURE__ */ definePrimitive(
  { torch: "F.pad(a, $0)", tensors: ["nm"], arguments: [[1, 2, 0, 1]] },
  (x: Tensor, padding: readonly number[], options: PadOptions = {}): Tensor => {
    const samples = overSamples(pad, x, padding, options);
    if (samples) return samples;
    checkTensor("pad", x);
    checkOptions("pad", options, { value: "number", mode: "string" });
    const { value = 0, mode = "constant" } = options;
    const isKnown = mode === "constant" || mode in PLACES;
    checkValue(isKnown, "pad", "mode", '"constant", "reflect", "replicate" or "circular"', mode);
    checkRange("pad", [value], x.dtype);
    const rank = x.shape.length;
    check(
      Array.isArray(padding) &&
        padding.length % 2 === 0 &&
        padding.length <= 2 * rank &&
        padding.every(Number.isInteger),
      "BAD_ARGUMENT",
      "pad",
      () => `padding must be up to ${rank} pairs of integers, got ${show(padding)}.`,
      "[left, right] pads the last axis, [left, right, top, bottom] the last two.",
    );
    if (mode !== "constant") return bordered(x, padding, mode);
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
    const kept = x.shape.map((extent, axis) =>
      Math.max(extent + Math.min(of(axis, 0), 0) + Math.min(of(axis, 1), 0), 0),
    );
    const place = (extents: readonly number[], sign: 1 | -1) => {
      const strides = denseStrides(extents);
      const starts = strides.map((stride, axis) => stride * Math.max(sign * of(axis, 0), 0));
      return { offset: starts.reduce((a, b) => a + b, 0), strides };
    };
    copyBox(x, output, kept, place(x.shape, -1), place(shape, 1));
    const back = padding.map((side) => -side);
    return record("pad", output, [x], [], (g) => [pad(g, back)]);
  },
);

/** The border of an axis is made of its own elements, one after the other. */
function bordered(x: Tensor, padding: readonly number[], mode: keyof typeof PLACES): Tensor {
  const last = x.shape.length - 1;
  return tidy(() => {
    let result = mode === "circular" ? reshape(x, x.shape) : withFlatGradient(x);
    for (let i = 0; i < padding.length; i += 2) {
      const [before, after] = [padding[i]!, padding[i + 1]!];
      const axis = last - i / 2;
      const extent = x.shape[axis]!;
      const most = mode === "reflect" ? extent - 1 : mode === "circular" ? extent : extent && Number.POSITIVE_INFINITY;
      check(
        Math.min(before, after) >= 0 && Math.max(before, after) <= most,
        "BAD_ARGUMENT",
        "pad",
        () =>
          `padding by "${mode}" must be from 0 to ${most} where the extent is ${extent}, got ${before} and ${after}.`,
        "Pad less.",
      );
      const inner = result;
      const at = (place: number) => slice(inner, PLACES[mode](place, extent), PLACES[mode](place, extent) + 1, axis);
      const left = Array.from({ length: before }, (_, k) => at(k - before));
      const right = Array.from({ length: after }, (_, k) => at(extent + k));
      result = concat([...left, inner, ...right], axis);
    }
    return result;
  });
}
