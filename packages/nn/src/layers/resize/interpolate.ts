/** Sequences, images and volumes of another size. */
import { type AxisTaps, check, checkOptions, checkTensor, resample, show, type Tensor, tidy } from "@opt/core";

export type InterpolationMode = "nearest" | "linear" | "bilinear" | "trilinear";

export interface InterpolateOptions {
  /** The extents of the result: one for all axes, or one for each. */
  readonly size?: number | readonly number[];
  /** How many times larger the result is, in place of `size`: floor(extent * scaleFactor). */
  readonly scaleFactor?: number | readonly number[];
  /** The nearest element, or weights by distance along one, two or three axes. Default "nearest". */
  readonly mode?: InterpolationMode;
  /** The corners of input and result are the same points, in place of their outer edges. Default false. */
  readonly alignCorners?: boolean;
  /** Places follow from the extents of the result, as with `size`, and not from `scaleFactor` itself. Default false. */
  readonly recomputeScaleFactor?: boolean;
}

/** How many axes a mode is for; "nearest" is for all. */
const AXES: Readonly<Record<InterpolationMode, number>> = { nearest: 0, linear: 1, bilinear: 2, trilinear: 3 };

const NUMBERS = ["number", "array"] as const;
const OPTIONS = {
  size: NUMBERS,
  scaleFactor: NUMBERS,
  mode: "string",
  alignCorners: "boolean",
  recomputeScaleFactor: "boolean",
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
  const isLinear = mode !== "nearest" || !alignCorners;
  check(
    isLinear,
    "BAD_ARGUMENT",
    where,
    () => "alignCorners is for linear modes, got it with nearest.",
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
  const extents = x.shape.slice(2);
  const axes = extents.length;
  const given = [(size ?? scaleFactor)!].flat();
  check(
    axes >= 1 && axes <= 3 && (mode === "nearest" || AXES[mode] === axes) && !x.shape.slice(1).includes(0),
    "BAD_SHAPE",
    where,
    () =>
      `mode "${mode}" needs [batch, channels, ...extents] with ${AXES[mode] || "1 to 3"} extents, got [${x.shape}].`,
    'Modes are "linear", "bilinear" and "trilinear".',
  );
  const isEach = given.length === 1 || given.length === axes;
  check(
    isEach,
    "BAD_SHAPE",
    where,
    () => `needs 1 or ${axes} numbers for [${x.shape}], got ${given.length}.`,
    "One number is for all axes.",
  );
  const taps = extents.map((extent, axis) => {
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
    if (mode === "nearest") return nearest(extent, count, step, axes === 2);
    return linear(extent, count, step, alignCorners);
  });
  return tidy(() => resample(x, taps));
}

/** PyTorch counts in float32 here, which decides between neighbours. In images it takes whole scales as whole, whatever was given. */
function nearest(extent: number, count: number, step: number, isImage: boolean): AxisTaps {
  const isWhole = isImage && (count === extent || count === 2 * extent);
  const scale = isWhole ? extent / count : Math.fround(step);
  const at = (i: number) => Math.floor(Math.fround(i * scale));
  const indices = Array.from({ length: count }, (_, i) => [Math.min(at(i), extent - 1)]);
  return { indices, weights: indices.map(() => [1]) };
}

function linear(extent: number, count: number, step: number, alignCorners: boolean): AxisTaps {
  const between = count > 1 ? (extent - 1) / (count - 1) : 0;
  const places = Array.from({ length: count }, (_, i) =>
    count === extent ? i : alignCorners ? i * between : Math.max((i + 0.5) * step - 0.5, 0),
  );
  const before = places.map((place) => Math.min(Math.floor(place), extent - 1));
  return {
    indices: before.map((at) => [at, Math.min(at + 1, extent - 1)]),
    weights: before.map((at, i) => {
      const share = Math.min(places[i]! - at, 1);
      return [1 - share, share];
    }),
  };
}
