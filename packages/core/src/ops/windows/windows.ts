/** Windows that slide over images [batch, channels, height, width]: as columns, and the largest value of each. */

import type { Window2d } from "../../backend/spec";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { carried } from "../../js/carried";
import {
  fold as foldOnJs,
  maxPool2dGrad as maxPool2dGradOnJs,
  maxPool2d as maxPool2dOnJs,
  unfold as unfoldOnJs,
} from "../../js/windows";
import { overSamples } from "../../tensor/batching";
import { type Backward, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType, isFloat, type MapDType } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn } from "../compute";
import { defineFunction, definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { gather } from "../indices/gather";
import { positions } from "../indices/positions";
import { reshape } from "../shape/shape";

const UNFOLD = /* @__PURE__ */ carried("unfold", unfoldOnJs);
const FOLD = /* @__PURE__ */ carried("fold", foldOnJs);
const MAX_POOL = /* @__PURE__ */ carried("maxPool2d", maxPool2dOnJs);
const MAX_POOL_GRAD = /* @__PURE__ */ carried("maxPool2dGrad", maxPool2dGradOnJs);

/** Devices walk over all places of a window, those in the padding, too, and count them in 32 bits. */
export const MOST_PLACES = 2 ** 24;

/** One number for both directions, or [vertical, horizontal]. */
export type Pair = number | readonly [number, number];

export interface WindowOptions {
  readonly stride?: Pair;
  readonly padding?: Pair;
  readonly dilation?: Pair;
}

export interface MaxPoolOptions extends WindowOptions {
  /** Windows may reach beyond the padding at the end, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
}

export const WINDOW_OPTIONS = {
  stride: ["number", "array"],
  padding: ["number", "array"],
  dilation: ["number", "array"],
} as const;

export function pair(where: string, name: string, value: Pair, least: number): readonly [number, number] {
  const both = (Array.isArray(value) ? value : [value, value]) as readonly [number, number];
  check(
    both.length === 2 && both.every((n) => Number.isInteger(n) && n >= least),
    "BAD_ARGUMENT",
    where,
    () => `${name} must be an integer >= ${least} or a pair of them, got ${show(value)}.`,
    "For example 2 or [2, 1].",
  );
  return both;
}

export function windowOf(
  where: string,
  x: Pick<Tensor, "shape">,
  kernelSize: Pair,
  options: WindowOptions,
  defaultStride: Pair,
  ceilMode = false,
): Window2d {
  check(
    x.shape.length === 4,
    "BAD_SHAPE",
    where,
    () => `images must be [batch, channels, height, width], got ${showShape(x.shape)}.`,
    "Reshape them.",
  );
  const [batch, channels, height, width] = x.shape as [number, number, number, number];
  const kernel = pair(where, "kernelSize", kernelSize, 1);
  const stride = pair(where, "stride", options.stride ?? defaultStride, 1);
  const padding = pair(where, "padding", options.padding ?? 0, 0);
  const dilation = pair(where, "dilation", options.dilation ?? 1, 1);
  const extent = (size: number, i: 0 | 1) => {
    const steps = (size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) / stride[i];
    if (!ceilMode) return Math.floor(steps) + 1;
    const last = Math.ceil(steps);
    return last * stride[i] >= size + padding[i] ? last : last + 1; // none begins in the padding behind
  };
  const [outHeight, outWidth] = [extent(height, 0), extent(width, 1)];
  check(
    outHeight >= 1 && outWidth >= 1,
    "BAD_SHAPE",
    where,
    () => `the window ${showShape(kernel)} must fit into the padded image, got ${showShape([height, width])}.`,
    "Use a smaller kernel or more padding.",
  );
  check(
    kernel[0] * kernel[1] <= MOST_PLACES,
    "UNSUPPORTED",
    where,
    () => `a window has at most ${MOST_PLACES} places, got ${showShape(kernel)}.`,
    "Pool in two steps, or reduce over the image.",
  );
  return { batch, channels, height, width, outHeight, outWidth, kernel, stride, padding, dilation };
}

type WindowKind = typeof UNFOLD | typeof FOLD;

function launchWindow(kind: WindowKind, input: Tensor, window: Window2d): Tensor {
  const { batch, channels, height, width, outHeight, outWidth, kernel } = window;
  const image = [batch, channels, height, width];
  const columns = [batch, channels * kernel[0] * kernel[1], outHeight * outWidth];
  const { device, dtype } = input;
  const output = Tensor.empty(kind === UNFOLD ? columns : image, dtype, device);
  device.launch({
    kind,
    kernel: device.kernel<WindowKind>({ kind, dtype: dtype as MapDType }),
    input: input.memorySlice(),
    output: output.memorySlice(),
    window,
  } as Parameters<typeof device.launch>[0]);
  return output;
}

/** Each is the other's adjoint. */
export function windows(kind: WindowKind, x: Tensor, window: Window2d): Tensor {
  const samples = overSamples(windows, kind, x, window);
  if (samples) return samples;
  const adjoint = kind === UNFOLD ? FOLD : UNFOLD;
  return record(kind, launchWindow(kind, x, window), [x], [], (g) => [windows(adjoint, g, window)]);
}

/** Windows of images as columns: [batch, channels * kernelHeight * kernelWidth, outHeight * outWidth]; padding reads 0. @throws OptError BAD_SHAPE, BAD_ARGUMENT */
export const unfold = /* @__PURE__ */ definePrimitive(
  { torch: "F.unfold(a, $0)", tensors: ["nm44"], arguments: [2] },
  (x: Tensor, kernelSize: Pair, options: WindowOptions = {}): Tensor => {
    const samples = overSamples(unfold, x, kernelSize, options);
    if (samples) return samples;
    checkTensor("unfold", x);
    checkOptions("unfold", options, WINDOW_OPTIONS);
    const window = windowOf("unfold", x, kernelSize, options, 1);
    const compute = computeOn(x.device, x.dtype);
    if (x.dtype !== compute) return computeIn(compute, [x], x.dtype, (wide) => unfold(wide!, kernelSize, options));
    return windows("unfold", x, window);
  },
);

/**
 * The adjoint of `unfold`: columns [batch, channels * kernelHeight * kernelWidth, windows] are added at their places in images
 * [batch, channels, ...outputSize]. Integers give f32.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * fold(ones([1, 4, 4]), 3, 2); // [1, 1, 3, 3]: 4 in the middle, 1 in the corners
 */
export const fold = /* @__PURE__ */ defineFunction(
  {
    name: "fold",
    torch: "F.fold(a, (3, 4), 2, padding=1, stride=2)",
    tensors: ["n86"],
    arguments: [[3, 4], 2, { padding: 1, stride: 2 }],
  },
  (x: Tensor, outputSize: Pair, kernelSize: Pair, options: WindowOptions = {}): Tensor => {
    const where = "fold";
    checkOptions(where, options, WINDOW_OPTIONS);
    const [height, width] = pair(where, "outputSize", outputSize, 1);
    const [rows, columns] = pair(where, "kernelSize", kernelSize, 1);
    const [batch, depth = 0] = x.shape as [number, number, number];
    check(
      x.shape.length === 3 && depth > 0 && depth % (rows * columns) === 0,
      "BAD_SHAPE",
      where,
      () => `columns must be [batch, channels * ${rows * columns}, windows], got ${showShape(x.shape)}.`,
      "They are what unfold gives.",
    );
    const image = [batch, depth / (rows * columns), height, width];
    const window = windowOf(where, { shape: image }, kernelSize, options, 1);
    const count = window.outHeight * window.outWidth;
    check(
      x.shape[2] === count,
      "BAD_SHAPE",
      where,
      () => `an image of ${showShape([height, width])} has ${count} windows, got ${x.shape[2]}.`,
      "Check outputSize, stride and padding.",
    );
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (wide) => windows("fold", wide!, window));
  },
);

/** True if some window covers only padding along an axis: dilated taps can straddle a small image. */
function missesImage({ kernel, stride, padding, dilation, ...window }: Window2d, axis: 0 | 1): boolean {
  const [size, outputs] = axis === 0 ? [window.height, window.outHeight] : [window.width, window.outWidth];
  const inside = (at: number) => at >= 0 && at < size;
  if (dilation[axis] === 1) return false; // no more than half a window is padding
  const taps = Array.from({ length: kernel[axis] }, (_, tap) => tap * dilation[axis] - padding[axis]);
  return Array.from({ length: outputs }, (_, i) => i * stride[axis]).some(
    (at) => !taps.some((tap) => inside(at + tap)),
  );
}

/** Largest value of each window; of equal ones the first has the gradient, of NaN the last, as in PyTorch. The stride is the kernel size by default. @throws OptError BAD_SHAPE, BAD_ARGUMENT */
export const maxPool2d = /* @__PURE__ */ definePrimitive(
  { torch: "F.max_pool2d(a, $0)", tensors: ["nm44"], arguments: [2] },
  (x: Tensor, kernelSize: Pair, options: MaxPoolOptions = {}): Tensor => {
    const samples = overSamples(maxPool2d, x, kernelSize, options);
    if (samples) return samples;
    checkTensor("maxPool2d", x);
    checkOptions("maxPool2d", options, { ...WINDOW_OPTIONS, ceilMode: "boolean" });
    const window = windowOf("maxPool2d", x, kernelSize, options, kernelSize, options.ceilMode);
    check(
      window.padding.every((p, i) => 2 * p <= window.kernel[i]!),
      "BAD_ARGUMENT",
      "maxPool2d",
      () => `padding must be at most half the kernel, got ${window.padding} for ${window.kernel}.`,
      "Pad less.",
    );
    check(
      !missesImage(window, 0) && !missesImage(window, 1),
      "BAD_ARGUMENT",
      "maxPool2d",
      () => `every window must reach the image, got dilation ${window.dilation} with padding ${window.padding}.`,
      "Pad or dilate less.",
    );
    const compute = computeOn(x.device, x.dtype);
    if (x.dtype !== compute) return computeIn(compute, [x], x.dtype, (wide) => maxPool2d(wide!, kernelSize, options));
    const { device } = x;
    const shape = [window.batch, window.channels, window.outHeight, window.outWidth];
    const output = Tensor.empty(shape, compute, device);
    const indices = Tensor.empty(shape, "i32", device);
    device.launch({
      kind: "maxPool2d",
      kernel: device.kernel({ kind: MAX_POOL, dtype: compute }),
      input: x.memorySlice(),
      output: output.memorySlice(),
      indices: indices.memorySlice(),
      window,
    });
    const backward: Backward = (g, [held]) => [maxPoolGrad(g, held!, window)];
    const recorded = record("maxPool2d", output, [x], [indices], backward, [0]);
    indices.dispose();
    return recorded;
  },
);

/** The gradient at the places of the largest values. */
function maxPoolGrad(gradient: Tensor, indices: Tensor, window: Window2d): Tensor {
  const { device } = gradient;
  const dtype = gradient.dtype as ComputeDType;
  const { batch, channels, height, width } = window;
  const result = Tensor.empty([batch, channels, height, width], dtype, device);
  device.launch({
    kind: "maxPool2dGrad",
    kernel: device.kernel({ kind: MAX_POOL_GRAD, dtype }),
    gradient: gradient.memorySlice(),
    indices: indices.memorySlice(),
    output: result.memorySlice(),
    window,
  });
  return record("maxPool2dGrad", result, [gradient], [indices], (g, [held]) => [atPlaces(g, held!)]);
}

/** What images hold at places that are counted in each plane. */
function atPlaces(images: Tensor, places: Tensor): Tensor {
  const [batch, channels, height, width] = images.shape as [number, number, number, number];
  const starts = positions([batch, channels, 1, 1], images.device, height * width);
  return gather(reshape(images, [images.size]), elementwise("add", [places, starts]));
}
