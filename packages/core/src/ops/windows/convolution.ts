/** Convolution, which is a matrix product with the windows of images, and its adjoint. */

import type { Window2d } from "../../backend/spec";
import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { autocast } from "../../tensor/autocast";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, type DType, isFloat, promote } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { inLow } from "../autocast-operands";
import { cast, computeIn } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn, WRAP } from "../compute";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { inWords } from "../map";
import { matmul } from "../matmul";
import { reshape } from "../shape/shape";
import { convolve } from "./convolve";
import { type Pair, pair, unfold, WINDOW_OPTIONS, type WindowOptions, windowOf, windows } from "./windows";

export interface ConvolutionOptions extends WindowOptions {
  /** Channels are cut into so many groups, each of which sees its own alone. Default 1. */
  readonly groups?: number;
}

export interface ConvTransposeOptions extends ConvolutionOptions {
  /** More rows and columns at the end, which no input reaches by itself. Default 0. */
  readonly outputPadding?: Pair;
}

/**
 * Cross-correlation of images with weight [outChannels, channels / groups, kernelHeight, kernelWidth], plus bias [outChannels].
 * Result [batch, outChannels, outHeight, outWidth], extent = floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
 * Integers wrap as in `matmul`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const edges = conv2d(rand([1, 1, 8, 8]), ones([1, 1, 3, 3]), null, { padding: 1 }); // [1, 1, 8, 8]
 */
export const conv2d = /* @__PURE__ */ definePrimitive(
  { torch: "F.conv2d(a, b, c)", tensors: ["nm44", "km23", "k"] },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: ConvolutionOptions = {}): Tensor => {
    const samples = overSamples(conv2d, x, weight, bias, options);
    if (samples) return samples;
    const where = "conv2d";
    checkOptions(where, options, { ...WINDOW_OPTIONS, groups: "number" });
    const { groups = 1, ...sliding } = options;
    const [outChannels, channels] = checkImages(where, x, weight, bias, groups, 0);
    check(
      x.shape[1] === channels * groups && outChannels % groups === 0,
      "BAD_SHAPE",
      where,
      () =>
        `weight must be [outChannels, channels / ${groups}, height, width] with the channels of x ${showShape(x.shape)}, got ${showShape(weight.shape)}.`,
      "Check the channel counts.",
    );
    const kernel = weight.shape.slice(2) as [number, number];
    const window = windowOf(where, x, kernel, sliding, 1);
    const { batch, outHeight, outWidth } = window;
    return inCompute(x, weight, bias, (images, weights, shift) => {
      if (groups === 1 && isFloat(images.dtype)) return shifted(convolve(images, weights, window), shift);
      const rows = channels * kernel[0] * kernel[1];
      const product = matmul(
        reshape(weights, [groups, outChannels / groups, rows]),
        reshape(unfold(images, kernel, sliding), [batch, groups, rows, outHeight * outWidth]),
      );
      return shifted(reshape(product, [batch, outChannels, outHeight, outWidth]), shift);
    });
  },
);

/**
 * The adjoint of `conv2d`, also called deconvolution. Weight [channels, outChannels / groups, kernelHeight, kernelWidth], bias [outChannels].
 * Each element of x times the weight is added to its window.
 * Result extent = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1. Integers wrap as in `matmul`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const larger = convTranspose2d(rand([1, 2, 4, 4]), rand([2, 1, 2, 2]), null, { stride: 2 }); // [1, 1, 8, 8]
 */
export const convTranspose2d = /* @__PURE__ */ definePrimitive(
  { torch: "F.conv_transpose2d(a, b, c)", tensors: ["nm23", "mk22", "k"] },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: ConvTransposeOptions = {}): Tensor => {
    const samples = overSamples(convTranspose2d, x, weight, bias, options);
    if (samples) return samples;
    const where = "convTranspose2d";
    checkOptions(where, options, { ...WINDOW_OPTIONS, groups: "number", outputPadding: ["number", "array"] });
    const groups = options.groups ?? 1;
    const [channels, outPerGroup] = checkImages(where, x, weight, bias, groups, 1);
    check(
      x.shape[1] === channels && channels % groups === 0,
      "BAD_SHAPE",
      where,
      () =>
        `weight must be [channels, outChannels / ${groups}, height, width] with the channels of x ${showShape(x.shape)}, got ${showShape(weight.shape)}.`,
      "Check the channel counts.",
    );
    const [batch, , outHeight, outWidth] = x.shape as [number, number, number, number];
    const kernel = weight.shape.slice(2) as [number, number];
    const stride = pair(where, "stride", options.stride ?? 1, 1);
    const padding = pair(where, "padding", options.padding ?? 0, 0);
    const dilation = pair(where, "dilation", options.dilation ?? 1, 1);
    const extra = pair(where, "outputPadding", options.outputPadding ?? 0, 0);
    const extent = (size: number, i: 0 | 1) =>
      (size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + extra[i] + 1;
    const [height, width] = [extent(outHeight, 0), extent(outWidth, 1)];
    check(
      ([0, 1] as const).every((i) => extra[i] < Math.max(stride[i], dilation[i])),
      "BAD_ARGUMENT",
      where,
      () => `outputPadding must be smaller than stride or dilation, got ${extra}.`,
      "Pad the result with pad().",
    );
    const isThere = height >= 1 && width >= 1;
    check(isThere, "BAD_SHAPE", where, () => `the result would have the extents ${height} and ${width}.`, "Pad less.");
    const outChannels = outPerGroup * groups;
    const rows = outPerGroup * kernel[0] * kernel[1];
    const window = {
      batch,
      channels: outChannels,
      height,
      width,
      outHeight,
      outWidth,
      kernel,
      stride,
      padding,
      dilation,
    };
    return inCompute(x, weight, bias, (images, weights, shift) => {
      const product = matmul(
        reshape(weights, [groups, channels / groups, rows]),
        reshape(images, [batch, groups, channels / groups, outHeight * outWidth]),
        { transposeA: true },
      );
      const columns = reshape(product, [batch, groups * rows, outHeight * outWidth]);
      return shifted(folded(columns, window), shift);
    });
  },
);

/** The extents of the weight's first axes. @throws OptError BAD_SHAPE, BAD_ARGUMENT */
function checkImages(
  where: string,
  x: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  groups: number,
  outAxis: 0 | 1,
): [number, number] {
  checkTensor(where, x);
  checkTensor(where, weight, "weight");
  if (bias !== null) checkTensor(where, bias, "bias");
  const isCount = Number.isInteger(groups) && groups >= 1;
  checkValue(isCount, where, "groups", "an integer >= 1", groups, "Use 1.");
  check(
    x.shape.length === 4 && weight.shape.length === 4 && !weight.shape.includes(0),
    "BAD_SHAPE",
    where,
    () => `x and weight must have 4 axes, got ${showShape(x.shape)} and ${showShape(weight.shape)}.`,
    "Images are [batch, channels, height, width].",
  );
  const outChannels = weight.shape[outAxis]! * (outAxis === 0 ? 1 : groups);
  check(
    bias === null || (bias.shape.length === 1 && bias.size === outChannels),
    "BAD_SHAPE",
    where,
    () => `bias must be [${outChannels}], got ${showShape(bias!.shape)}.`,
    "One number per output channel.",
  );
  return [weight.shape[0]!, weight.shape[1]!];
}

/** Sums of integers are exact in float64 before they are cut to their bits, as products are. */
export function folded(columns: Tensor, window: Window2d): Tensor {
  const { dtype } = columns;
  if (isFloat(dtype)) return windows("fold", columns, window);
  const compute = computeOn(columns.device, "i32");
  const wrapped = (sums: Tensor) => (compute === "f64" ? inWords(WRAP, sums) : sums);
  return tidy(() =>
    cast(
      computeIn(compute, [columns], "i32", (x) => wrapped(windows("fold", x!, window))),
      dtype,
    ),
  );
}

/** Of 16-bit floats nothing but the result is rounded. Integers stay what they are, because products wrap as integers alone. */
export function inCompute(
  x: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  body: (x: Tensor, weight: Tensor, bias: Tensor | undefined) => Tensor,
): Tensor {
  const given = bias === null ? [x, weight] : [x, weight, bias];
  const low = inLow(given, (images, weights, shift) => inCompute(images!, weights!, shift ?? null, body));
  if (low !== null) return low;
  const dtype: DType = given.map((tensor) => tensor.dtype).reduce(promote);
  const compute = dtype === "bool" || isFloat(dtype) ? computeDType(dtype) : dtype;
  return autocast(null, () =>
    computeIn(compute, given, dtype, (images, weights, shift) => body(images!, weights!, shift)),
  );
}

/** Plus a number for each channel of [batch, channels, ...extents]. */
export function shifted(images: Tensor, bias: Tensor | undefined): Tensor {
  const extents = images.shape.slice(2).map(() => 1);
  return bias === undefined ? images : elementwise("add", [images, reshape(bias, [bias.size, ...extents])]);
}
