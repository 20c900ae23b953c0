/** Discrete Fourier transforms of one sequence, in float64: radix 4 for powers of two, in blocks where they are long, and Bluestein's for all others. */
import type { FourierBlocks, Turns } from "../../backend/host-kernels";
import { turn, turns } from "./turn";

/** Transforms n complex numbers in place, by e^(-2 pi i j k / n). The inverse swaps the two arrays. */
export interface Transform {
  (re: Float64Array, im: Float64Array): void;
  /** Of a long power of two: what a device's own kernel needs. */
  readonly blocks?: FourierBlocks;
}

/** Tables of the latest lengths. */
const made = new Map<number, Transform>();
const KEPT = 8;

/** The tables of a Fourier transform of n numbers. */
export function transformOf(n: number): Transform {
  const known = made.get(n);
  if (known !== undefined) return known;
  const transform = n < 2 ? () => {} : (n & (n - 1)) !== 0 ? bluestein(n) : n <= SHORT ? radix4(n) : inBlocks(n);
  if (made.size >= KEPT) made.delete(made.keys().next().value!);
  made.set(n, transform);
  return transform;
}

/** Longer ones leave the first caches. */
const SHORT = 4096;

/**
 * Stockham's: each pass reads one pair of arrays and writes another, so nothing is put in order afterwards. `lanes` sequences lie side by
 * side: element k of sequence i is at `k * lanes + i`.
 */
function radix4(n: number, lanes = 1, { cosines, sines } = turns(n, n)): Transform {
  const other = [new Float64Array(n * lanes), new Float64Array(n * lanes)] as const;
  return (re, im) => {
    let [a, b, x, y] = [re, im, other[0], other[1]] as [Float64Array, Float64Array, Float64Array, Float64Array];
    let done = 1;
    for (; n / done >= 4; done *= 4) {
      pass4(a, b, x, y, n, done, lanes, cosines, sines);
      [a, b, x, y] = [x, y, a, b];
    }
    if (n / done === 2) {
      pass2(a, x, done * lanes);
      pass2(b, y, done * lanes);
      [a, b] = [x, y];
    }
    if (a === re) return;
    re.set(a);
    im.set(b);
  };
}

function pass2(from: Float64Array, to: Float64Array, half: number): void {
  for (let q = 0; q < half; q++) {
    const first = from[q]!;
    const second = from[q + half]!;
    to[q] = first + second;
    to[q + half] = first - second;
  }
}

function pass4(
  re: Float64Array,
  im: Float64Array,
  toRe: Float64Array,
  toIm: Float64Array,
  n: number,
  done: number,
  lanes: number,
  cosines: Float64Array,
  sines: Float64Array,
): void {
  const quarter = (n / 4) * lanes;
  const stride = done * lanes;
  for (let turned = 0; turned < n / 4; turned += done) {
    const at = turned * lanes;
    const c1 = cosines[turned]!;
    const s1 = sines[turned]!;
    const c2 = cosines[2 * turned]!;
    const s2 = sines[2 * turned]!;
    const c3 = cosines[3 * turned]!;
    const s3 = sines[3 * turned]!;
    for (let q = at; q < at + stride; q++) {
      const to = q + 3 * at;
      const ar = re[q]! + re[q + 2 * quarter]!;
      const ai = im[q]! + im[q + 2 * quarter]!;
      const br = re[q]! - re[q + 2 * quarter]!;
      const bi = im[q]! - im[q + 2 * quarter]!;
      const cr = re[q + quarter]! + re[q + 3 * quarter]!;
      const ci = im[q + quarter]! + im[q + 3 * quarter]!;
      const dr = re[q + quarter]! - re[q + 3 * quarter]!;
      const di = im[q + quarter]! - im[q + 3 * quarter]!;
      toRe[to] = ar + cr;
      toIm[to] = ai + ci;
      const er = br + di;
      const ei = bi - dr;
      toRe[to + stride] = er * c1 + ei * s1;
      toIm[to + stride] = ei * c1 - er * s1;
      const fr = ar - cr;
      const fi = ai - ci;
      toRe[to + 2 * stride] = fr * c2 + fi * s2;
      toIm[to + 2 * stride] = fi * c2 - fr * s2;
      const gr = br - di;
      const gi = bi + dr;
      toRe[to + 3 * stride] = gr * c3 + gi * s3;
      toIm[to + 3 * stride] = gi * c3 - gr * s3;
    }
  }
}

/** Columns side by side: what shares lines of the cache. */
const LANES = 8;

/** As a matrix [rows, columns]: its columns, then turned, its rows (Bailey 1990). Each element leaves the caches twice. */
function inBlocks(n: number): Transform {
  const bits = 31 - Math.clz32(n);
  const rows = 2 ** (bits >> 1);
  const columns = n / rows;
  const [ofRows, ofColumns] = [turns(rows, rows), turns(columns, columns)];
  const [alongColumns, alongRows] = [radix4(rows, LANES, ofRows), radix4(columns, LANES, ofColumns)];
  // A turn of k / n is one of k's upper bits and one of its lower bits.
  const fine = turns(columns, n);
  const [re, im] = [new Float64Array(n), new Float64Array(n)];
  const [x, y, u, v] = [rows, rows, columns, columns].map((length) => new Float64Array(length * LANES)) as [
    Float64Array,
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const transform: Transform = (toRe, toIm) => {
    for (let column = 0; column < columns; column += LANES) {
      gather(toRe, x, column, columns);
      gather(toIm, y, column, columns);
      alongColumns(x, y);
      turnAll(x, y, column, columns, fine, ofRows);
      scatter(x, re, column, columns);
      scatter(y, im, column, columns);
    }
    for (let row = 0; row < rows; row += LANES) {
      interleave(re, u, row * columns, columns);
      interleave(im, v, row * columns, columns);
      alongRows(u, v);
      scatter(u, toRe, row, rows);
      scatter(v, toIm, row, rows);
    }
  };
  return Object.assign(transform, { blocks: { rows, columns, ofRows, ofColumns, fine, re, im } });
}

/** LANES columns of a matrix of so many columns, from one on. */
function gather(matrix: Float64Array, to: Float64Array, column: number, columns: number): void {
  for (let i = 0, at = column; i < to.length; i += LANES, at += columns)
    for (let lane = 0; lane < LANES; lane++) to[i + lane] = matrix[at + lane]!;
}

function scatter(from: Float64Array, matrix: Float64Array, column: number, columns: number): void {
  for (let i = 0, at = column; i < from.length; i += LANES, at += columns)
    for (let lane = 0; lane < LANES; lane++) matrix[at + lane] = from[i + lane]!;
}

/** LANES rows side by side. */
function interleave(matrix: Float64Array, to: Float64Array, start: number, columns: number): void {
  for (let lane = 0; lane < LANES; lane++)
    for (let k = 0, at = start + lane * columns; k < columns; k++) to[k * LANES + lane] = matrix[at + k]!;
}

/** Element k of a column turns back by k * column / n. */
function turnAll(x: Float64Array, y: Float64Array, column: number, columns: number, fine: Turns, coarse: Turns): void {
  const shift = 31 - Math.clz32(columns);
  for (let i = 0; i < x.length; i++) {
    const whole = (i >> 3) * (column + (i & 7));
    const low = whole & (columns - 1);
    const high = whole >> shift;
    const c = fine.cosines[low]! * coarse.cosines[high]! - fine.sines[low]! * coarse.sines[high]!;
    const s = fine.cosines[low]! * coarse.sines[high]! + fine.sines[low]! * coarse.cosines[high]!;
    const re = x[i]!;
    const im = y[i]!;
    x[i] = re * c + im * s;
    y[i] = im * c - re * s;
  }
}

/** Any length as a convolution of a power of two: j k = (j^2 + k^2 - (k - j)^2) / 2. */
function bluestein(n: number): Transform {
  let length = 2;
  while (length < 2 * n - 1) length *= 2;
  const [cosines, sines] = [new Float64Array(n), new Float64Array(n)];
  for (let k = 0; k < n; k++) [cosines[k], sines[k]] = turn((k * k) % (2 * n), 2 * n) as [number, number];
  const transform = transformOf(length);
  const [filterRe, filterIm] = [new Float64Array(length), new Float64Array(length)];
  for (let k = 0; k < n; k++) {
    filterRe[k] = filterRe[(length - k) % length] = cosines[k]! / length;
    filterIm[k] = filterIm[(length - k) % length] = sines[k]! / length;
  }
  transform(filterRe, filterIm);
  const [x, y] = [new Float64Array(length), new Float64Array(length)];
  return (re, im) => {
    x.fill(0);
    y.fill(0);
    for (let k = 0; k < n; k++) {
      x[k] = re[k]! * cosines[k]! + im[k]! * sines[k]!;
      y[k] = im[k]! * cosines[k]! - re[k]! * sines[k]!;
    }
    transform(x, y);
    for (let k = 0; k < length; k++) {
      const [a, b] = [x[k]!, y[k]!];
      x[k] = a * filterRe[k]! - b * filterIm[k]!;
      y[k] = a * filterIm[k]! + b * filterRe[k]!;
    }
    transform(y, x);
    for (let k = 0; k < n; k++) {
      re[k] = x[k]! * cosines[k]! + y[k]! * sines[k]!;
      im[k] = y[k]! * cosines[k]! - x[k]! * sines[k]!;
    }
  };
}
