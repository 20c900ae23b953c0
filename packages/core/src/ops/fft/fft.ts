/** Discrete Fourier transforms of tensors, as torch.fft's. */
import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, type Shape, showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkAnyTensor, checkNumbers } from "../check-tensor";
import { viewAsComplex, viewAsReal } from "../complex";
import { elementwise } from "../elementwise/elementwise";
import { floats } from "../indices/positions";
import { fill } from "../map";
import { stack } from "../shape/join";
import { flip, roll } from "../shape/repeat";
import { concat, reshape, slice, transpose } from "../shape/shape";
import { type Direction, transformed } from "./pairs";
import { transformedReal } from "./spectrum";

const NORMS = ["backward", "forward", "ortho"] as const;

export interface FftOptions {
  /** The axis's extent before the transform (of `irfft`: after it). Longer axes are cut, shorter ones get zeros. Default: as x has it. */
  readonly n?: number;
  /** Default -1. */
  readonly axis?: number;
  /** Where 1/n stands: "backward", the default, in the inverse; "forward"; "ortho" puts 1/sqrt(n) in both. */
  readonly norm?: (typeof NORMS)[number];
}

/** The same of several axes. */
export interface FftnOptions {
  /** An extent for each axis. */
  readonly sizes?: readonly number[];
  /** Default [-2, -1]; of `fftn` and `ifftn` all, or the last ones where there are sizes. */
  readonly axes?: readonly number[];
  readonly norm?: (typeof NORMS)[number];
}

const OPTIONS = { n: "number", axis: "number", norm: "string" } as const;
const SEVERAL = { sizes: "array", axes: "array", norm: "string" } as const;

/**
 * y_k = sum_j x_j e^(-2 pi i j k / n) along an axis, as c64 of x's shape. x is c64, f32 or whole numbers; f64 throws, since there is no complex
 * dtype of f64. Any n takes n log(n) steps.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_DTYPE; BAD_SHAPE for an axis without elements; BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * viewAsReal(fft(tensor([1, 0, 0, 0]))); // four times 1 + 0i
 */
export function fft(x: Tensor, options: FftOptions = {}): Tensor {
  return ofComplex("fft", x, oneAxis("fft", x, options), "forward");
}

/**
 * x_j = 1/n sum_k y_k e^(2 pi i j k / n) along an axis, as c64: the inverse of `fft`, which see.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * viewAsReal(ifft(fft(tensor([1, 2])))); // [[1, 0], [2, 0]]
 */
export function ifft(x: Tensor, options: FftOptions = {}): Tensor {
  return ofComplex("ifft", x, oneAxis("ifft", x, options), "inverse");
}

/**
 * The first floor(n/2) + 1 elements of `fft` of real numbers along an axis, as c64: the others are their conjugates.
 *
 * @throws OptError BAD_DTYPE for f64 and complex numbers; BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * rfft(tensor([1, 2, 3, 4])); // 10, -2 + 2i, -2
 */
export function rfft(x: Tensor, options: FftOptions = {}): Tensor {
  return ofReal("rfft", x, oneAxis("rfft", x, options));
}

/**
 * The inverse of `rfft` along an axis, as f32: n real numbers, by default 2 (m - 1) of m complex ones.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * irfft(rfft(tensor([1, 2, 3])), { n: 3 }); // [1, 2, 3]
 */
export function irfft(x: Tensor, options: FftOptions = {}): Tensor {
  return toReal("irfft", x, oneAxis("irfft", x, options));
}

/**
 * `fft` along the last two axes, or along others.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * fft2(ones([2, 2])); // [[4, 0], [0, 0]]
 */
export function fft2(x: Tensor, options: FftnOptions = {}): Tensor {
  return ofComplex("fft2", x, twoAxes("fft2", x, options), "forward");
}

/**
 * The inverse of `fft2`.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * ifft2(fft2(ones([2, 2]))); // ones
 */
export function ifft2(x: Tensor, options: FftnOptions = {}): Tensor {
  return ofComplex("ifft2", x, twoAxes("ifft2", x, options), "inverse");
}

/**
 * `rfft` along the last of two axes, then `fft` along the other.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * rfft2(ones([2, 4])).shape; // [2, 3]
 */
export function rfft2(x: Tensor, options: FftnOptions = {}): Tensor {
  return ofReal("rfft2", x, twoAxes("rfft2", x, options));
}

/**
 * The inverse of `rfft2`.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * irfft2(rfft2(ones([2, 4]))); // ones
 */
export function irfft2(x: Tensor, options: FftnOptions = {}): Tensor {
  return toReal("irfft2", x, twoAxes("irfft2", x, options));
}

/**
 * `fft` along all axes, or along some.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * fftn(ones([2, 2, 2])); // 8, then zeros
 */
export function fftn(x: Tensor, options: FftnOptions = {}): Tensor {
  return ofComplex("fftn", x, allAxes("fftn", x, options), "forward");
}

/**
 * The inverse of `fftn`.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * ifftn(fftn(ones([2, 2, 2]))); // ones
 */
export function ifftn(x: Tensor, options: FftnOptions = {}): Tensor {
  return ofComplex("ifftn", x, allAxes("ifftn", x, options), "inverse");
}

type Norm = (typeof NORMS)[number];

/** Axes from the front, with their extents where these are given. */
interface Axes {
  readonly axes: readonly number[];
  readonly sizes: readonly (number | undefined)[];
  readonly norm: Norm;
}

function oneAxis(where: string, x: Tensor, options: FftOptions): Axes {
  checkAnyTensor(where, x);
  checkOptions(where, options, OPTIONS);
  const { n, axis = -1, norm = "backward" } = options;
  return checked(where, x, [axis], [n], norm);
}

function twoAxes(where: string, x: Tensor, options: FftnOptions): Axes {
  checkAnyTensor(where, x);
  checkOptions(where, options, SEVERAL);
  const { axes = [-2, -1], sizes = axes.map(() => undefined), norm = "backward" } = options;
  return checked(where, x, axes, sizes, norm);
}

function allAxes(where: string, x: Tensor, options: FftnOptions): Axes {
  checkAnyTensor(where, x);
  checkOptions(where, options, SEVERAL);
  const { length } = options.sizes ?? x.shape;
  return twoAxes(where, x, { ...options, axes: options.axes ?? Array.from({ length }, (_, i) => i - length) });
}

function checked(
  where: string,
  x: Tensor,
  given: readonly number[],
  sizes: readonly (number | undefined)[],
  norm: Norm,
): Axes {
  checkValue(NORMS.includes(norm), where, "norm", '"backward", "forward" or "ortho"', norm);
  const axes = given.map((axis) => normalizeAxis(where, axis, x.shape.length));
  checkValue(new Set(axes).size === axes.length, where, "axes", "axes that differ", given);
  check(
    sizes.length === axes.length,
    "BAD_ARGUMENT",
    where,
    () => `needs a size for each axis, got ${sizes.length} for ${axes.length}.`,
    "For example { sizes: [8, 8] }.",
  );
  for (const n of sizes)
    checkValue(n === undefined || (Number.isInteger(n) && n > 0), where, "n", "a whole number from 1 on", n);
  return { axes, sizes, norm };
}

/** f32, or pairs [..., 2] of c64. @throws OptError BAD_DTYPE */
function numbersOf(where: string, x: Tensor, isReal = false): Tensor {
  const isComplex = x.dtype === "c64";
  check(
    isComplex ? !isReal : ["f32", "i32", "u8", "bool"].includes(x.dtype),
    "BAD_DTYPE",
    where,
    () => `x must be ${isReal ? "real" : "c64"}, f32 or whole numbers, got ${x.dtype}.`,
    isComplex ? "Use fft." : 'Complex numbers have parts of f32: use x.to("f32").',
  );
  return isComplex ? viewAsReal(x) : cast(x, "f32");
}

/** Real numbers as pairs [..., 2]. */
const paired = (x: Tensor): Tensor => stack([x, fill(x.shape, 0, "f32", x.device)], -1);

/** [..., 2] of f32. */
function pairsOf(where: string, x: Tensor): Tensor {
  const numbers = numbersOf(where, x);
  return x.dtype === "c64" ? numbers : paired(numbers);
}

/** An axis cut, or filled up by zeros. */
function resized(x: Tensor, axis: number, n: number): Tensor {
  const missing = n - x.shape[axis]!;
  if (missing === 0) return x;
  if (missing < 0) return slice(x, 0, n, axis);
  return concat([x, fill(x.shape.with(axis, missing), 0, x.dtype, x.device)], axis);
}

/** An axis of a transform. */
interface Along {
  readonly axis: number;
  /** Its extent after the transform. */
  readonly n: number;
  readonly direction: Direction;
  readonly norm: Norm;
}

/** What a transform multiplies by. */
function scaleOf(where: string, shape: Shape, { axis, n, direction, norm }: Along): number {
  check(
    n > 0,
    "BAD_SHAPE",
    where,
    () => `the axis must have elements, got axis ${axis} of ${showShape(shape)}.`,
    "Give n, or another axis.",
  );
  const isScaled = norm === (direction === "forward" ? "forward" : "backward");
  return norm === "ortho" ? 1 / Math.sqrt(n) : isScaled ? 1 / n : 1;
}

/** Pairs transformed along an axis. */
function along(where: string, x: Tensor, given: Along): Tensor {
  const { axis, n, direction } = given;
  const scale = scaleOf(where, x.shape.slice(0, -1), given);
  const last = x.shape.length - 2;
  const turn = (pairs: Tensor) => (axis === last ? pairs : transpose(pairs, axis, last));
  return turn(transformed(where, turn(resized(x, axis, n)), direction, scale));
}

/** Real numbers transformed along an axis, as pairs. */
function alongReal(where: string, x: Tensor, given: Along): Tensor {
  const { axis, n, direction } = given;
  if (n % 2 === 1) return along(where, paired(x), given);
  const scale = scaleOf(where, x.shape, given);
  const last = x.shape.length - 1;
  const turn = (numbers: Tensor) => (axis === last ? numbers : transpose(numbers, axis, last));
  return turn(transformedReal(where, turn(resized(x, axis, n)), direction, scale));
}

function ofComplex(where: string, x: Tensor, { axes, sizes, norm }: Axes, direction: Direction): Tensor {
  return tidy(() => {
    const [first, ...others] = axes.map((axis, i) => ({ axis, n: sizes[i] ?? x.shape[axis]!, direction, norm }));
    const start = numbersOf(where, x);
    if (first === undefined) return viewAsComplex(pairsOf(where, x));
    const pairs = (x.dtype === "c64" ? along : alongReal)(where, start, first);
    return viewAsComplex(others.reduce((all, each) => along(where, all, each), pairs));
  });
}

function ofReal(where: string, x: Tensor, { axes, sizes, norm }: Axes): Tensor {
  return tidy(() => {
    const all = axes.map((axis, i) => ({ axis, n: sizes[i] ?? x.shape[axis]!, direction: "forward" as const, norm }));
    const [last, others] = [all.at(-1)!, all.slice(0, -1)];
    const whole = alongReal(where, numbersOf(where, x, true), last);
    const half = slice(whole, 0, Math.floor(last.n / 2) + 1, last.axis);
    return viewAsComplex(others.reduce((pairs, each) => along(where, pairs, each), half));
  });
}

function toReal(where: string, x: Tensor, { axes, sizes, norm }: Axes): Tensor {
  return tidy(() => {
    const last = axes.length - 1;
    const axis = axes[last]!;
    const others = axes.slice(0, -1);
    const half = others.reduce(
      (pairs, axis, i) => along(where, pairs, { axis, n: sizes[i] ?? x.shape[axis]!, direction: "inverse", norm }),
      pairsOf(where, x),
    );
    const n = sizes[last] ?? 2 * (x.shape[axis]! - 1);
    const pairs = along(where, mirrored(half, axis, Math.max(n, 0)), { axis, n, direction: "inverse", norm });
    return reshape(slice(pairs, 0, 1, -1), pairs.shape.slice(0, -1));
  });
}

/** All n elements of an axis, of which the second half are the conjugates of the first. */
function mirrored(half: Tensor, axis: number, n: number): Tensor {
  const first = resized(half, axis, Math.floor(n / 2) + 1);
  const rest = flip(slice(first, 1, Math.ceil(n / 2), axis), axis);
  const conjugate = floats([2], "f32", half.device, (i) => (i === 0 ? 1 : -1));
  return concat([first, elementwise("mul", [rest, conjugate])], axis);
}

/**
 * Moves the zero frequency to the middle of each axis, or of some: element i goes to i + floor(n/2), around the end. Of any dtype.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there
 * @example
 * fftshift(tensor([0, 1, 2, -2, -1])); // [-2, -1, 0, 1, 2]
 */
export function fftshift(x: Tensor, axes?: number | readonly number[]): Tensor {
  return shifted("fftshift", x, axes, (extent) => Math.floor(extent / 2));
}

/**
 * The inverse of `fftshift`.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there
 * @example
 * ifftshift(tensor([-2, -1, 0, 1, 2])); // [0, 1, 2, -2, -1]
 */
export function ifftshift(x: Tensor, axes?: number | readonly number[]): Tensor {
  return shifted("ifftshift", x, axes, (extent) => -Math.floor(extent / 2));
}

function shifted(
  where: string,
  x: Tensor,
  axes: number | readonly number[] | undefined,
  by: (extent: number) => number,
): Tensor {
  checkAnyTensor(where, x);
  if (x.dtype !== "c64") checkNumbers(where, x);
  const { shape }: { shape: Shape } = x;
  const list = axes === undefined ? shape.map((_, axis) => axis) : [axes].flat();
  const along = list.map((axis) => normalizeAxis(where, axis, shape.length));
  const shifts = along.map((axis) => by(shape[axis]!));
  return tidy(() => (x.dtype === "c64" ? viewAsComplex(roll(viewAsReal(x), shifts, along)) : roll(x, shifts, along)));
}
