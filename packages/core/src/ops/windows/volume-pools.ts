/** Pools of volumes [batch, channels, depth, height, width]: along images first, and then along the depth. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { showShape } from "../../values/shape";
import { computeIn } from "../cast";
import { defineFunction } from "../define-function";
import { reshape } from "../shape/shape";
import { adaptiveMaxPool2d } from "./adaptive-max-pool";
import { adaptiveAvgPool2d, avgPool2d } from "./average-pool";
import { type Triple, triple } from "./volumes";
import { maxPool2d, type Pair, WINDOW_OPTIONS } from "./windows";

export interface MaxPool3dOptions {
  /** By default the kernel size. */
  readonly stride?: Triple;
  /** A border, which is never the largest: at most half the kernel. Default 0. */
  readonly padding?: Triple;
  /** Steps between the elements of a window. Default 1. */
  readonly dilation?: Triple;
  /** Windows may reach beyond the padding at the end, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
}

export interface AvgPool3dOptions {
  /** By default the kernel size. */
  readonly stride?: Triple;
  /** Zeros around the volume, at most half the kernel. Default 0. */
  readonly padding?: Triple;
  /** The padding counts in the average. Default true. */
  readonly countIncludePad?: boolean;
  /** Windows may reach beyond the padding at the end, so that no element is left out. Default false. */
  readonly ceilMode?: boolean;
  /** What sums are divided by, whatever the window holds. Default null: the number of its elements. */
  readonly divisorOverride?: number | null;
}

/** How many parts along each axis: one number for all, or one for each, of which null keeps the extent. */
export type OutputSize3d = number | readonly [number | null, number | null, number | null];

/** A pool of images, and then one along the depth, of which each image is a row. */
function inTwoSteps(x: Tensor, pools: readonly [(images: Tensor) => Tensor, (planes: Tensor) => Tensor]): Tensor {
  const [batch, channels, depth, height, width] = x.shape as [number, number, number, number, number];
  const images = pools[0](reshape(x, [batch, channels * depth, height, width]));
  const [, , outHeight, outWidth] = images.shape as [number, number, number, number];
  const planes = pools[1](reshape(images, [batch, channels, depth, outHeight * outWidth]));
  return reshape(planes, [batch, channels, planes.shape[2]!, outHeight, outWidth]);
}

function checkVolume(where: string, { shape }: Tensor): void {
  check(
    shape.length === 5,
    "BAD_SHAPE",
    where,
    () => `volumes must be [batch, channels, depth, height, width], got ${showShape(shape)}.`,
    "Reshape them.",
  );
}

/** The options of the two steps. */
function inImagesAndAlong(
  where: string,
  kernelSize: Triple,
  { stride, padding, dilation }: Pick<MaxPool3dOptions, "stride" | "padding" | "dilation">,
) {
  const kernel = triple(where, "kernelSize", kernelSize, 1);
  const [steps, border, spread] = [
    triple(where, "stride", stride ?? kernel, 1),
    triple(where, "padding", padding ?? 0, 0),
    triple(where, "dilation", dilation ?? 1, 1),
  ];
  const inImages = (three: readonly number[]): Pair => [three[1]!, three[2]!];
  const along = (three: readonly number[], none: number): Pair => [three[0]!, none];
  return [
    {
      kernel: inImages(kernel),
      window: { stride: inImages(steps), padding: inImages(border) },
      spread: inImages(spread),
    },
    {
      kernel: along(kernel, 1),
      window: { stride: along(steps, 1), padding: along(border, 0) },
      spread: along(spread, 1),
    },
  ] as const;
}

/**
 * The largest value of each window of volumes. The stride is the kernel size by default. Of equal ones the first has the gradient.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * maxPool3d(rand([1, 3, 4, 8, 8]), 2); // [1, 3, 2, 4, 4]
 */
export const maxPool3d = /* @__PURE__ */ defineFunction(
  {
    name: "maxPool3d",
    torch: "F.max_pool3d(a, 2, (1, 2, 1), 1)",
    tensors: ["nm345"],
    arguments: [2, { stride: [1, 2, 1], padding: 1 }],
  },
  (x: Tensor, kernelSize: Triple, options: MaxPool3dOptions = {}): Tensor => {
    checkOptions("maxPool3d", options, { ...WINDOW_OPTIONS, ceilMode: "boolean" });
    checkVolume("maxPool3d", x);
    const { ceilMode = false } = options;
    // PyTorch's order of equal values: by depth, then within images.
    const [images, along] = inImagesAndAlong("maxPool3d", kernelSize, options).map(
      ({ kernel, window, spread }) =>
        (planes: Tensor) =>
          maxPool2d(planes, kernel, { ...window, dilation: spread, ceilMode }),
    );
    return inTwoSteps(x, [images!, along!]);
  },
);

/**
 * The average of each window of volumes. The stride is the kernel size by default.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * avgPool3d(rand([1, 3, 4, 8, 8]), 2); // [1, 3, 2, 4, 4]
 */
export const avgPool3d = /* @__PURE__ */ defineFunction(
  {
    name: "avgPool3d",
    // PyTorch's has no 16 bits.
    torch:
      "F.avg_pool3d(a.to(torch.promote_types(a.dtype, torch.float32)), 2, (1, 2, 1), 1, count_include_pad=False).to(a.dtype)",
    tensors: ["nm345"],
    arguments: [2, { stride: [1, 2, 1], padding: 1, countIncludePad: false }],
  },
  (x: Tensor, kernelSize: Triple, options: AvgPool3dOptions = {}): Tensor => {
    const where = "avgPool3d";
    const { stride, padding } = WINDOW_OPTIONS;
    checkOptions(where, options, {
      stride,
      padding,
      countIncludePad: "boolean",
      ceilMode: "boolean",
      divisorOverride: "any",
    });
    checkVolume(where, x);
    const { countIncludePad = true, ceilMode = false, divisorOverride = null } = options;
    const steps = inImagesAndAlong(where, kernelSize, options);
    const divisors = divisorOverride === null ? [null, null] : [divisorOverride, 1];
    const [images, along] = steps.map(
      ({ kernel, window }, i) =>
        (planes: Tensor) =>
          avgPool2d(planes, kernel, { ...window, countIncludePad, ceilMode, divisorOverride: divisors[i]! }),
    );
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (volumes) => inTwoSteps(volumes!, [images!, along!]));
  },
);

/** @throws OptError BAD_ARGUMENT */
function outputsOf(where: string, outputSize: OutputSize3d) {
  const three: readonly unknown[] = Array.isArray(outputSize) ? outputSize : [outputSize, outputSize, outputSize];
  checkValue(
    three.length === 3 && three.every((n) => n === null || (Number.isInteger(n) && (n as number) >= 1)),
    where,
    "outputSize",
    "an integer >= 1 or three of them or null",
    outputSize,
    "For example 1 or [4, null, null].",
  );
  const [depth, ...image] = three as readonly (number | null)[];
  return { along: [depth!, null], image: image as [number | null, number | null] } as const;
}

/**
 * Averages of parts of volumes, as many along each axis as `outputSize` says: see `adaptiveAvgPool2d`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED for more than 2^24 parts of images
 * @example
 * adaptiveAvgPool3d(rand([1, 3, 4, 8, 6]), 1); // [1, 3, 1, 1, 1]
 */
export const adaptiveAvgPool3d = /* @__PURE__ */ defineFunction(
  {
    name: "adaptiveAvgPool3d",
    torch: "F.adaptive_avg_pool3d(a, (2, None, 3))",
    tensors: ["nm345"],
    arguments: [[2, null, 3]],
  },
  (x: Tensor, outputSize: OutputSize3d): Tensor => {
    checkVolume("adaptiveAvgPool3d", x);
    const { along, image } = outputsOf("adaptiveAvgPool3d", outputSize);
    const dtype = isFloat(x.dtype) ? x.dtype : "f32";
    return computeIn(computeDType(dtype), [x], dtype, (volumes) =>
      inTwoSteps(volumes!, [
        (images) => adaptiveAvgPool2d(images, image),
        (planes) => adaptiveAvgPool2d(planes, along),
      ]),
    );
  },
);

/**
 * The largest values of parts of volumes, as many along each axis as `outputSize` says: see `adaptiveMaxPool2d`.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT
 * @example
 * adaptiveMaxPool3d(rand([1, 3, 4, 8, 6]), 1); // [1, 3, 1, 1, 1]
 */
export const adaptiveMaxPool3d = /* @__PURE__ */ defineFunction(
  {
    name: "adaptiveMaxPool3d",
    torch: "F.adaptive_max_pool3d(a, (2, None, 3))",
    tensors: ["nm345"],
    arguments: [[2, null, 3]],
  },
  (x: Tensor, outputSize: OutputSize3d): Tensor => {
    checkVolume("adaptiveMaxPool3d", x);
    const { along, image } = outputsOf("adaptiveMaxPool3d", outputSize);
    return inTwoSteps(x, [(images) => adaptiveMaxPool2d(images, image), (planes) => adaptiveMaxPool2d(planes, along)]);
  },
);
