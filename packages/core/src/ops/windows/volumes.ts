/** Convolution of volumes [batch, channels, depth, height, width], and its adjoint: the slices of a window are channels of images. */
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { permute, reshape } from "../shape/shape";
import { conv2d, convTranspose2d, folded, inCompute, shifted } from "./convolution";
import { unfold, WINDOW_OPTIONS, windowOf } from "./windows";

/** One number for all directions, or [depth, vertical, horizontal]. */
export type Triple = number | readonly [number, number, number];
type Three = readonly [number, number, number];

export interface Convolution3dOptions {
  /** Steps between windows. Default 1. */
  readonly stride?: Triple;
  /** Zeros around the volume. Default 0. */
  readonly padding?: Triple;
  /** Steps between the elements of a window. Default 1. */
  readonly dilation?: Triple;
  /** Channels are cut into so many groups, each of which sees its own alone. Default 1. */
  readonly groups?: number;
}

export interface ConvTranspose3dCall extends Convolution3dOptions {
  /** More elements at the end, which no input reaches by itself. Default 0. */
  readonly outputPadding?: Triple;
}

/** @throws OptError BAD_ARGUMENT */
export function triple(where: string, name: string, value: Triple, least: number): Three {
  const three = (Array.isArray(value) ? value : [value, value, value]) as Three;
  check(
    three.length === 3 && three.every((n) => Number.isInteger(n) && n >= least),
    "BAD_ARGUMENT",
    where,
    () => `${name} must be an integer >= ${least} or three of them, got ${show(value)}.`,
    "For example 2 or [1, 2, 2].",
  );
  return three;
}

function checkVolumes(where: string, x: Tensor, weight: Tensor, bias: Tensor | null): void {
  if (bias !== null) checkTensor(where, bias, "bias");
  check(
    x.shape.length === 5 && weight.shape.length === 5 && !weight.shape.includes(0),
    "BAD_SHAPE",
    where,
    () => `x and weight must have 5 axes, got ${showShape(x.shape)} and ${showShape(weight.shape)}.`,
    "Volumes are [batch, channels, depth, height, width].",
  );
}

/**
 * Cross-correlation of volumes with weight [outChannels, channels / groups, kernelDepth, kernelHeight, kernelWidth], plus bias [outChannels].
 * Result [batch, outChannels, ...], extent = floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const features = conv3d(rand([1, 1, 4, 8, 8]), ones([2, 1, 3, 3, 3]), null, { padding: 1 }); // [1, 2, 4, 8, 8]
 */
export const conv3d = /* @__PURE__ */ defineFunction(
  {
    name: "conv3d",
    torch: "F.conv3d(a, b, None, (1, 2, 1), 1)",
    tensors: ["nm345", "pm222"],
    arguments: [null, { stride: [1, 2, 1], padding: 1 }],
  },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: Convolution3dOptions = {}): Tensor => {
    const where = "conv3d";
    checkOptions(where, options, { ...WINDOW_OPTIONS, groups: "number" });
    checkVolumes(where, x, weight, bias);
    const stride = triple(where, "stride", options.stride ?? 1, 1);
    const padding = triple(where, "padding", options.padding ?? 0, 0);
    const dilation = triple(where, "dilation", options.dilation ?? 1, 1);
    const [batch, channels, depth, height, width] = x.shape as [number, number, number, number, number];
    const [out, inside, slices, ...kernel] = weight.shape as [number, number, number, number, number];
    const along = { stride: [stride[0], 1], padding: [padding[0], 0], dilation: [dilation[0], 1] } as const;
    const window = windowOf(where, { shape: [batch, channels, depth, height * width] }, [slices, 1], along, 1);
    return inCompute(x, weight, bias, (volumes, weights, shift) => {
      const planes = reshape(volumes, [batch, channels, depth, height * width]);
      const stacks = reshape(unfold(planes, [slices, 1], along), [
        batch,
        channels * slices,
        window.outHeight,
        height,
        width,
      ]);
      const images = reshape(permute(stacks, [0, 2, 1, 3, 4]), [
        batch * window.outHeight,
        channels * slices,
        height,
        width,
      ]);
      const flat = conv2d(images, reshape(weights, [out, inside * slices, ...kernel]), shift ?? null, {
        stride: [stride[1], stride[2]],
        padding: [padding[1], padding[2]],
        dilation: [dilation[1], dilation[2]],
        ...(options.groups !== undefined && { groups: options.groups }),
      });
      const [, , outHeight, outWidth] = flat.shape as [number, number, number, number];
      return permute(reshape(flat, [batch, window.outHeight, out, outHeight, outWidth]), [0, 2, 1, 3, 4]);
    });
  },
);

/**
 * The adjoint of `conv3d`. Weight [channels, outChannels / groups, kernelDepth, kernelHeight, kernelWidth], bias [outChannels].
 * Result extent = (size - 1) stride - 2 padding + dilation (kernel - 1) + outputPadding + 1.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const larger = convTranspose3d(rand([1, 2, 2, 4, 4]), rand([2, 1, 2, 2, 2]), null, { stride: 2 }); // [1, 1, 4, 8, 8]
 */
export const convTranspose3d = /* @__PURE__ */ defineFunction(
  {
    name: "convTranspose3d",
    torch: "F.conv_transpose3d(a, b, None, 2, 1, 1)",
    tensors: ["nm232", "mp323"],
    arguments: [null, { stride: 2, padding: 1, outputPadding: 1 }],
  },
  (x: Tensor, weight: Tensor, bias: Tensor | null = null, options: ConvTranspose3dCall = {}): Tensor => {
    const where = "convTranspose3d";
    checkOptions(where, options, { ...WINDOW_OPTIONS, groups: "number", outputPadding: ["number", "array"] });
    checkVolumes(where, x, weight, bias);
    const { groups = 1 } = options;
    const stride = triple(where, "stride", options.stride ?? 1, 1);
    const padding = triple(where, "padding", options.padding ?? 0, 0);
    const dilation = triple(where, "dilation", options.dilation ?? 1, 1);
    const extra = triple(where, "outputPadding", options.outputPadding ?? 0, 0);
    const [batch, channels, depth, height, width] = x.shape as [number, number, number, number, number];
    const [given, outside, slices, ...kernel] = weight.shape as [number, number, number, number, number];
    const fullDepth = (depth - 1) * stride[0] - 2 * padding[0] + dilation[0] * (slices - 1) + extra[0] + 1;
    check(
      extra[0] < Math.max(stride[0], dilation[0]),
      "BAD_ARGUMENT",
      where,
      () => `outputPadding must be smaller than stride or dilation, got ${extra}.`,
      "Pad the result with pad().",
    );
    check(fullDepth >= 1, "BAD_SHAPE", where, () => `the result would have the depth ${fullDepth}.`, "Pad less.");
    const out = outside * groups;
    const isBias = bias === null || (bias.shape.length === 1 && bias.size === out);
    check(isBias, "BAD_SHAPE", where, () => `bias must be [${out}], got ${showShape(bias!.shape)}.`);
    return inCompute(x, weight, bias, (volumes, weights, shift) => {
      const images = reshape(permute(volumes, [0, 2, 1, 3, 4]), [batch * depth, channels, height, width]);
      const flat = convTranspose2d(images, reshape(weights, [given, outside * slices, ...kernel]), null, {
        stride: [stride[1], stride[2]],
        padding: [padding[1], padding[2]],
        dilation: [dilation[1], dilation[2]],
        outputPadding: [extra[1], extra[2]],
        groups,
      });
      const [, , outHeight, outWidth] = flat.shape as [number, number, number, number];
      const area = outHeight * outWidth;
      const stacks = permute(reshape(flat, [batch, depth, out * slices, area]), [0, 2, 1, 3]);
      const volume = folded(reshape(stacks, [batch, out * slices, depth * area]), {
        batch,
        channels: out,
        height: fullDepth,
        width: area,
        outHeight: depth,
        outWidth: area,
        kernel: [slices, 1],
        stride: [stride[0], 1],
        padding: [padding[0], 0],
        dilation: [dilation[0], 1],
      });
      return shifted(reshape(volume, [batch, out, fullDepth, outHeight, outWidth]), shift);
    });
  },
);
