/** Householder's reflections H = 1 - tau v transpose(v), in float64. All of them take the signs of LAPACK. */
import type { HostKernels, ReflectRows } from "../../backend/host-kernels";

/** Some in order: what `ReflectRows` says of them. The first element of each v is 1. */
export type Reflections = Pick<ReflectRows, "v" | "taus" | "first" | "width">;

export function noReflections(count: number, first: number, width: number): Reflections {
  return { v: new Float64Array(count * width), taus: new Float64Array(count), first, width };
}

/** Where the v of one is. */
export function vectorOf({ v, first, width }: Reflections, k: number): Float64Array {
  return v.subarray(k * width + first + k, k * width + width);
}

/** Makes the k-th, of the vector x that was put where its v will be. @returns what the first element of x becomes, while others become 0 */
export function reflect(reflections: Reflections, k: number): number {
  const x = vectorOf(reflections, k);
  const alpha = x[0]!;
  let rest = 0;
  for (let i = 1; i < x.length; i++) rest = Math.max(rest, Math.abs(x[i]!));
  if (rest === 0) {
    x[0] = 1;
    return alpha;
  }
  const size = Math.max(rest, Math.abs(alpha));
  // Squares of others overflow, or vanish.
  const scale = size < 1e150 && size > 1e-140 ? 1 : size;
  if (scale !== 1) for (let i = 1; i < x.length; i++) x[i] = x[i]! / scale;
  x[0] = alpha / scale;
  const norm = scale * Math.sqrt(dot(x, 0, x, 0, x.length));
  x[0] = 1;
  const beta = alpha < 0 ? norm : -norm;
  for (let i = 1; i < x.length; i++) x[i] = (x[i]! * scale) / (alpha - beta);
  reflections.taus[k] = (beta - alpha) / beta;
  return beta;
}

/** The sum of products of elements of a from `at` on and of v from `of` on, in lanes. */
export function dot(a: Float64Array, at: number, v: Float64Array, of: number, length: number): number {
  const whole = length & ~3;
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let i = 0; i < whole; i += 4) {
    s0 += a[at + i]! * v[of + i]!;
    s1 += a[at + i + 1]! * v[of + i + 1]!;
    s2 += a[at + i + 2]! * v[of + i + 2]!;
    s3 += a[at + i + 3]! * v[of + i + 3]!;
  }
  for (let i = whole; i < length; i++) s0 += a[at + i]! * v[of + i]!;
  return s0 + s1 + (s2 + s3);
}

/** Adds the product of `factor` and elements of v from `of` on to those of a from `at` on. */
export function addProduct(
  a: Float64Array,
  at: number,
  factor: number,
  v: Float64Array,
  of: number,
  length: number,
): void {
  for (let i = 0; i < length; i++) a[at + i] = a[at + i]! + factor * v[of + i]!;
}

export function reflectRows({ rows, width, from, to, v, taus, first, begin, end, backwards }: ReflectRows): void {
  for (let row = from; row < to; row++) {
    for (let i = begin; i < end; i++) {
      const k = backwards ? begin + end - 1 - i : i;
      const start = first + k;
      const tau = taus[k]!;
      if (tau === 0 || row < start) continue;
      const [at, of, length] = [row * width + start, k * width + start, width - start];
      addProduct(rows, at, -tau * dot(rows, at, v, of, length), v, of, length);
    }
  }
}

/** The rows of the transposed product H0 H1 ..., of as many rows as given. */
export function productRows(all: Reflections, rows: number, kernels?: HostKernels): Float64Array {
  const { width, first, taus } = all;
  const product = new Float64Array(rows * width);
  for (let i = 0; i < Math.min(rows, width); i++) product[i * width + i] = 1;
  const run = kernels?.reflectRows ?? reflectRows;
  // Rows before a reflection are those of the unit matrix, and are 0 where its v is not.
  run({ ...all, rows: product, from: first, to: rows, begin: 0, end: taus.length, backwards: true });
  return product;
}
