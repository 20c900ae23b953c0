/** Sequences, images and volumes of another size. */
import {
  type AxisTaps,
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  check,
  checkOptions,
  checkTensor,
  resample,
  show,
  type Tensor,
  tidy,
} from "@opt/core";
import { type AxisScale, cubicTaps, filteredTaps, linearTaps, nearestExactTaps, nearestTaps } from "./taps";

export type InterpolationMode = "nearest" | "nearest-exact" | "linear" | "bilinear" | "trilinear" | "bicubic" | "area";

export interface InterpolateOptions {
  /** The extents of the result: one for all axes, or one for each. */
  readonly size?: number | readonly number[];
  /** How many times larger the result is, in place of `size`: floor(extent * scaleFactor). */
  readonly scaleFactor?: number | readonly number[];
  /**
   * The nearest element; weights by distance along one, two or three axes; cubic weights of images; or "area", the mean of what an element
   * covers. Default "nearest".
   */
  readonly mode?: InterpolationMode;
  /** The corners of input and result are the same points, in place of their outer edges. Default false. */
  readonly alignCorners?: boolean;
  /** Places follow from the extents of the result, as with `size`, and not from `scaleFactor` itself. Default false. */
  readonly recomputeScaleFactor?: boolean;
  /** Smaller images are filtered first, so that fine patterns leave no aliases: for "bilinear" and "bicubic". Default false. */
  readonly antialias?: boolean;
}

/** How many axes a mode is for; 0 stands for any. */
const AXES: Readonly<Record<InterpolationMode, number>> = {
  nearest: 0,
  "nearest-exact": 0,
  linear: 1,
  bilinear: 2,
  trilinear: 3,
  bicubic: 2,
  area: 0,
};

const NUMBERS = ["number", "array"] as const;
const OPTIONS = {
  size: NUMBERS,
  scaleFactor: NUMBERS,
  mode: "string",
  alignCorners: "boolean",
  recomputeScaleFactor: "boolean",
  antialias: "boolean",
} as const;

/** @throws OptError BAD_ARGUMENT */
export function checkInterpolation(where: string, options: InterpolateOptions): void {
  checkOptions(where, options, OPTIONS);
  const { size, scaleFactor, mode = "nearest", alignCorners = false, recomputeScaleFactor = false } = options;
  const advice = "For example { scaleFactor: 2 }.";
  const isOne = (size === undefined) !== (scaleFactor === undefined);
  check(isOne, "BAD_ARGUMENT", where, () => "needs either size or scaleFactor, got both or none.", advice);
  check(
    !recomputeScaleFactor || size === undefined,
    "BAD_ARGUMENT",
    where,
    () => "recomputeScaleFactor goes with scaleFactor, got it with size.",
    advice,
  );
  const list = [(size ?? scaleFactor)!].flat();
  const fits =
    list.length > 0 && list.every((n) => n > 0 && Number.isFinite(n) && (size === undefined || Number.isInteger(n)));
  check(
    fits,
    "BAD_ARGUMENT",
    where,
    () => `${size === undefined ? "scaleFactor" : "size"} must be > 0, got ${show(size ?? scaleFactor)}.`,
    advice,
  );
  const known = Object.keys(AXES).map((name) => `"${name}"`);
  const isKnown = typeof mode === "string" && mode in AXES;
  check(isKnown, "BAD_ARGUMENT", where, () => `mode must be one of ${known.join(", ")}, got ${show(mode)}.`, advice);
  check(
    !alignCorners || AXES[mode] > 0,
    "BAD_ARGUMENT",
    where,
    () => `alignCorners is for modes that weigh, got it with ${mode}.`,
    "Leave it out.",
  );
  check(
    !options.antialias || AXES[mode] === 2,
    "BAD_ARGUMENT",
    where,
    () => `antialias is for "bilinear" and "bicubic", got it with ${mode}.`,
    "Leave it out.",
  );
}

/**
 * Another size of [batch, channels, length], [batch, channels, height, width] or [batch, channels, depth, height, width], as PyTorch computes it.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE
 * @example
 * interpolate(tensor([[[1, 2]]]), { scaleFactor: 2 }); // [[[1, 1, 2, 2]]]
 * interpolate(rand([1, 3, 8, 8]), { size: [12, 10], mode: "bilinear" }); // [1, 3, 12, 10]
 */
export function interpolate(x: Tensor, options: InterpolateOptions): Tensor {
  const where = "interpolate";
  checkTensor(where, x);
  checkInterpolation(where, options);
  const { size, scaleFactor, mode = "nearest", alignCorners = false, recomputeScaleFactor = false } = options;
  const { antialias = false } = options;
  const extents = x.shape.slice(2);
  const axes = extents.length;
  const given = [(size ?? scaleFactor)!].flat();
  check(
    axes >= 1 && axes <= 3 && (AXES[mode] === 0 || AXES[mode] === axes) && !x.shape.slice(1).includes(0),
    "BAD_SHAPE",
    where,
    () =>
      `mode "${mode}" needs [batch, channels, ...extents] with ${AXES[mode] || "1 to 3"} extents, got [${x.shape}].`,
    '"nearest" and "area" take all three.',
  );
  const isEach = given.length === 1 || given.length === axes;
  check(
    isEach,
    "BAD_SHAPE",
    where,
    () => `needs 1 or ${axes} numbers for [${x.shape}], got ${given.length}.`,
    "One number is for all axes.",
  );
  const scales = extents.map((extent, axis): AxisScale => {
    const number = given[axis] ?? given[0]!;
    const count = size === undefined ? Math.floor(extent * number) : number;
    check(
      count >= 1 && count < 2 ** 31,
      "BAD_SHAPE",
      where,
      () => `an axis of the result must have from 1 to 2^31 - 1 elements, got ${number} of ${extent}.`,
      count < 1 ? "Scale by more." : "Scale by less.",
    );
    const step = size === undefined && !recomputeScaleFactor ? 1 / number : extent / count;
    return { extent, count, step, alignCorners };
  });
  if (mode === "area") return averaged(x, scales);
  const taps = scales.map((scale) => tapsOf(scale, mode, axes, antialias));
  return tidy(() => resample(x, taps));
}

function tapsOf(scale: AxisScale, mode: InterpolationMode, axes: number, antialias: boolean): AxisTaps {
  if (mode === "nearest") return nearestTaps(scale, axes === 2);
  if (mode === "nearest-exact") return nearestExactTaps(scale);
  const kind = mode === "bicubic" ? "cubic" : "linear";
  if (antialias) return filteredTaps(scale, kind);
  return kind === "cubic" ? cubicTaps(scale) : linearTaps(scale);
}

function averaged(x: Tensor, scales: readonly AxisScale[]): Tensor {
  const [first, second, third] = scales.map(({ count }) => count) as [number, number, number];
  if (scales.length === 1) return adaptiveAvgPool1d(x, first);
  return scales.length === 2 ? adaptiveAvgPool2d(x, [first, second]) : adaptiveAvgPool3d(x, [first, second, third]);
}
