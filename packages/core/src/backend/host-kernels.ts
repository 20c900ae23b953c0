/**
 * Inner loops of algorithms that the host computes in float64, on its own arrays. Core has each of them in JavaScript, and a device that
 * shares the host's memory may have faster ones with equal words. So the order of all sums is stated: lane i is that of elements i mod 4,
 * what is left after the last four goes to lane 0, and the lanes add up to (0 + 1) + (2 + 3).
 */

/** Rows of a matrix become H row for some of the reflections H = 1 - tau v transpose(v), one after the other. Products of a row and v are in lanes. */
export interface ReflectRows {
  /** [at least `to`, width]. */
  readonly rows: Float64Array;
  readonly width: number;
  /** The rows from `from` to below `to`. */
  readonly from: number;
  readonly to: number;
  /** The v of reflection k is row k of so many columns, from column `first + k` on. It leaves rows before row `first + k` alone. */
  readonly v: Float64Array;
  /** 0 where nothing is to be reflected. */
  readonly taus: Float64Array;
  readonly first: number;
  /** The reflections from `begin` to below `end`. */
  readonly begin: number;
  readonly end: number;
  /** The last one first. */
  readonly backwards: boolean;
}

/** Pairs of rows rotate one after the other: the first becomes c * first + s * second, the second c * second - s * first. */
export interface RotateRows {
  /** [height, width]. */
  readonly rows: Float64Array;
  readonly height: number;
  readonly width: number;
  readonly firsts: Int32Array;
  readonly seconds: Int32Array;
  readonly cosines: Float64Array;
  readonly sines: Float64Array;
  readonly count: number;
}

/**
 * The lower triangle of the last `length` rows and columns of a [n, n] loses v transpose(w) + w transpose(v); then `product` becomes its
 * symmetric matrix times u. Row by row: the products of a row and u are in lanes, and what column r gets of later rows is added in order.
 */
export interface TridiagonalUpdate {
  readonly a: Float64Array;
  readonly n: number;
  readonly length: number;
  readonly v: Float64Array;
  readonly w: Float64Array;
  readonly u: Float64Array;
  readonly product: Float64Array;
}

/** Adds the products of `factors` and rows to `sums`, in the order of rows. */
export interface SumOfRows {
  /** A matrix of `width` columns, of which `count` rows and `length` columns are taken from element `start` on. */
  readonly a: Float64Array;
  readonly start: number;
  readonly width: number;
  readonly count: number;
  readonly length: number;
  readonly factors: Float64Array;
  readonly sums: Float64Array;
}

/** To each row x of the same part first `scale * factor * sums` is added, then `-tau * (x v) * v`. The products of x and v are in lanes. */
export interface BidiagonalUpdate extends SumOfRows {
  readonly scale: number;
  readonly tau: number;
  readonly v: Float64Array;
}

/** Cosines and sines of parts of a turn. */
export interface Turns {
  readonly cosines: Float64Array;
  readonly sines: Float64Array;
}

/** A sequence of rows * columns numbers as a matrix, for transforms of its columns, eight side by side, and then of its rows. */
export interface FourierBlocks {
  readonly rows: number;
  readonly columns: number;
  /** k / rows of a turn, and k / columns. */
  readonly ofRows: Turns;
  readonly ofColumns: Turns;
  /** k / (rows * columns), for k below columns. */
  readonly fine: Turns;
  /** What is between both. */
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** Core's ops/fft/transform.ts of pairs, times `scale`. The inverse swaps real and imaginary parts. */
export interface FourierTransform extends FourierBlocks {
  readonly from: Float32Array;
  readonly to: Float32Array;
  readonly inverse: boolean;
  readonly scale: number;
}

/**
 * Core's ops/fft/spectrum.ts of 2 * rows * columns real numbers, times `scale`: neighbours are one complex number, so `from` is half as long as
 * pairs of real numbers and zeros are. `to` gets as many pairs as there are real numbers; the inverse has the other sign of imaginary parts.
 */
export interface RealFourierTransform extends FourierTransform {
  /** k / (2 * rows * columns), up to a quarter of a turn. */
  readonly halves: Turns;
  /** The transform of the complex numbers. */
  readonly halfRe: Float64Array;
  readonly halfIm: Float64Array;
}

export interface HostArguments {
  readonly reflectRows: ReflectRows;
  readonly rotateRows: RotateRows;
  readonly tridiagonalUpdate: TridiagonalUpdate;
  readonly sumOfRows: SumOfRows;
  readonly bidiagonalUpdate: BidiagonalUpdate;
  readonly fourierTransform: FourierTransform;
  readonly realFourierTransform: RealFourierTransform;
}

export type HostKernels = { readonly [Name in keyof HostArguments]: (given: HostArguments[Name]) => void };
