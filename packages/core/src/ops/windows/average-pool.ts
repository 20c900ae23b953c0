/** Averages of windows of images, and of as many parts of them as are asked for. */

import type { Window2d } from "../../backend/spec";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { cast, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { le } from "../elementwise/logic";
import { withFlatGradient } from "../flat-gradient";
import { gather } from "../indices/gather";
import { places } from "../indices/positions";
import { mean, sum } from "../reduce/reduce";
import { reshape, transpose } from "../shape/shape";
import { type OutputSize2d, outputSizeOf, partsOf } from "./parts";
import { type Pair, windowOf, windows } from "./windows";

export interface AvgPoolOptions {
  /** By default the kernel size. */
  readonly stride?: Pair;
  /** Zeros around the image, at most half the kernel. Default 0. */
  readonly padding?: Pair;
  /** The padding counts in the average. Default true. */
  readonly countIncludePad?: boolean;
  /** Windows may reach beyond the padding at the end, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
  /** What sums are divided by, whatever the window holds. Default null: the number of its elements. */
  readonly divisorOverride?: number | null;
}

/**
 * The average of each window of images [batch, channels, height, width].
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * avgPool2d(rand([1, 3, 8, 8]), 2); // [1, 3, 4, 4]
 */
export const avgPool2d = /* @__PURE__ */ definePrimitive(
  { torch: "F.avg_pool2d(a, $0)", tensors: ["nm44"], arguments: [2] },
  (x: Tensor, kernelSize: Pair, options: AvgPoolOptions = {}): Tensor => {
    const samples = overSamples(avgPool2d, x, kernelSize, options);
    if (samples) return samples;
    const where = "avgPool2d";
    checkTensor(where, x);
    checkOptions(where, options, {
      stride: ["number", "array"],
      padding: ["number", "array"],
      countIncludePad: "boolean",
      ceilMode: "boolean",
      divisorOverride: "any",
    });
    const {
      stride = kernelSize,
      padding = 0,
      countIncludePad = true,
      ceilMode = false,
      divisorOverride = null,
    } = options;
    const isDivisor = divisorOverride === null || (Number.isInteger(divisorOverride) && divisorOverride !== 0);
    checkValue(
      isDivisor,
      where,
      "divisorOverride",
      "an integer other than 0, or null",
      divisorOverride,
      "Leave it out.",
    );
    const window = windowOf(where, x, kernelSize, { stride, padding }, 1, ceilMode);
    const { batch, channels, outHeight, outWidth, kernel } = window;
    check(
      window.padding.every((p, i) => 2 * p <= kernel[i]!),
      "BAD_ARGUMENT",
      where,
      () => `padding must be at most half the kernel, got ${window.padding} for ${kernel}.`,
      "Pad less.",
    );
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (images) => {
      const taps = windows("unfold", withFlatGradient(images!), window);
      const sums = sum(reshape(taps, [batch, channels, kernel[0] * kernel[1], outHeight * outWidth]), 2);
      const counts = divisorOverride ?? countsOf(window, countIncludePad, images!);
      return elementwise("div", [reshape(sums, [batch, channels, outHeight, outWidth]), counts]);
    });
  },
);

/** How many elements of each window count: a number where that is all of them. */
function countsOf(window: Window2d, includesPadding: boolean, { device, dtype }: Tensor): Tensor | number {
  const { height, width, outHeight, outWidth, kernel, stride, padding } = window;
  const along = (axis: 0 | 1, size: number, outputs: number) =>
    Array.from({ length: outputs }, (_, i) => {
      const from = i * stride[axis] - padding[axis];
      const border = includesPadding ? padding[axis] : 0;
      return Math.min(from + kernel[axis], size + border) - Math.max(from, -border);
    });
  const [down, across] = [along(0, height, outHeight), along(1, width, outWidth)];
  if ([...down.map((n) => n - kernel[0]), ...across.map((n) => n - kernel[1])].every((n) => n === 0))
    return kernel[0] * kernel[1];
  const at = (i: number) => down[Math.floor(i / outWidth)]! * across[i % outWidth]!;
  return cast(places([outHeight, outWidth], device, at), dtype);
}

/**
 * Averages of parts of images, as many along each axis as `outputSize` says: part i of n begins at floor(i size / n) and ends before
 * ceil((i + 1) size / n). null keeps an extent.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED for more than 2^24 parts
 * @example
 * adaptiveAvgPool2d(rand([1, 3, 8, 6]), 1); // [1, 3, 1, 1]
 */
export const adaptiveAvgPool2d = /* @__PURE__ */ definePrimitive(
  { torch: "F.adaptive_avg_pool2d(a, $0)", tensors: ["nm54"], arguments: [2] },
  (x: Tensor, outputSize: OutputSize2d): Tensor => {
    const samples = overSamples(adaptiveAvgPool2d, x, outputSize);
    if (samples) return samples;
    const where = "adaptiveAvgPool2d";
    checkTensor(where, x);
    const isImages = x.shape.length === 4;
    check(
      isImages,
      "BAD_SHAPE",
      where,
      () => `images must be [batch, channels, height, width], got ${showShape(x.shape)}.`,
    );
    const [height, width] = x.shape.slice(2) as [number, number];
    check(
      height * width > 0,
      "BAD_SHAPE",
      where,
      () => `images must have pixels, got ${showShape(x.shape)}.`,
      "Leave them out.",
    );
    const [rows, columns] = outputSizeOf(where, x, outputSize);
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    const compute = computeDType(dtype);
    return computeIn(compute, [x], dtype, (images) => {
      const [batch, channels] = x.shape as [number, number];
      // PyTorch takes one part for a plain mean, whose gradient does not depend on the images.
      const given = rows * columns === 1 ? images! : withFlatGradient(images!);
      if (height % rows === 0 && width % columns === 0) {
        const parted = reshape(given, [batch, channels, rows, height / rows, columns, width / columns]);
        return mean(parted, [3, 5]);
      }
      return reshape(unequalParts(given, rows, columns), [batch, channels, rows, columns]);
    });
  },
);

/** Averages of parts that differ in size: [planes, rows * columns]. Pixels are chosen, because a product of shares would make a NaN of one part that of all. */
function unequalParts(images: Tensor, rows: number, columns: number): Tensor {
  const { device, shape } = images;
  const [height, width] = shape.slice(2) as [number, number];
  const [down, across] = [partsOf(height, rows), partsOf(width, columns)];
  const parts = rows * columns;
  const taps = down.most * across.most;
  /** Of part and tap: the pixel, or -1 beyond the part. */
  const pixelOf = (part: number, tap: number) => {
    const y = down.at(Math.floor(part / columns), Math.floor(tap / across.most));
    const x = across.at(part % columns, tap % across.most);
    return y < 0 || x < 0 ? -1 : y * width + x;
  };
  const pixels = places([parts, taps], device, (i) => pixelOf(Math.floor(i / taps), i % taps));
  const inside = le(0, pixels);
  const planes = transpose(reshape(images, [shape[0]! * shape[1]!, height * width]), 0, 1);
  const taken = gather(planes, elementwise("max", [pixels, 0]));
  const sums = sum(elementwise("select", [reshape(inside, [parts, taps, 1]), taken, 0]), 1);
  const counts = cast(sum(inside, 1, true), images.dtype);
  return transpose(elementwise("div", [sums, counts]), 0, 1);
}
