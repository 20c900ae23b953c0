/** Householder's reflections H = 1 - tau v transpose(v), in float64. All of them take the signs of LAPACK. */

export interface Reflection {
  /** What the first element becomes, while all others become 0. */
  readonly beta: number;
  /** 0 where nothing is to be reflected. */
  readonly tau: number;
  /** Its first element is 1. */
  readonly v: Float64Array;
}

/** The reflection of x, whose memory v takes. */
export function reflection(x: Float64Array): Reflection {
  const alpha = x[0]!;
  let rest = 0;
  for (let i = 1; i < x.length; i++) rest = Math.max(rest, Math.abs(x[i]!));
  x[0] = 1;
  if (rest === 0) return { beta: alpha, tau: 0, v: x };
  const size = Math.max(rest, Math.abs(alpha));
  let sum = (alpha / size) * (alpha / size);
  for (let i = 1; i < x.length; i++) sum += (x[i]! / size) * (x[i]! / size);
  const norm = size * Math.sqrt(sum);
  const beta = alpha < 0 ? norm : -norm;
  for (let i = 1; i < x.length; i++) x[i] = x[i]! / (alpha - beta);
  return { beta, tau: (beta - alpha) / beta, v: x };
}

/** The sum of products of v and the elements of a from `at` on. In four partial sums, since one would wait for itself. */
export function dot(a: Float64Array, at: number, v: Float64Array): number {
  const whole = v.length & ~3;
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  for (let i = 0; i < whole; i += 4) {
    s0 += a[at + i]! * v[i]!;
    s1 += a[at + i + 1]! * v[i + 1]!;
    s2 += a[at + i + 2]! * v[i + 2]!;
    s3 += a[at + i + 3]! * v[i + 3]!;
  }
  for (let i = whole; i < v.length; i++) s0 += a[at + i]! * v[i]!;
  return s0 + s1 + (s2 + s3);
}

/** Adds the product of `factor` and v to the elements of a from `at` on. */
export function addProduct(a: Float64Array, at: number, factor: number, v: Float64Array): void {
  for (let i = 0; i < v.length; i++) a[at + i] = a[at + i]! + factor * v[i]!;
}

/** a = H a, for the rows from `row` on and the columns from `column` on of a matrix of `width` columns. */
export function reflectRows(a: Float64Array, width: number, { tau, v }: Reflection, row: number, column: number): void {
  if (tau === 0 || column >= width) return;
  const sums = new Float64Array(width - column);
  for (let i = 0; i < v.length; i++) {
    const [at, factor] = [(row + i) * width + column, v[i]!];
    for (let j = 0; j < sums.length; j++) sums[j] = sums[j]! + factor * a[at + j]!;
  }
  for (let i = 0; i < v.length; i++) addProduct(a, (row + i) * width + column, -tau * v[i]!, sums);
}

/** The rows of the transposed product H0 H1 ..., of as many rows as given: reflection k begins at element `first + k`. */
export function productRows(
  reflections: readonly Reflection[],
  first: number,
  rows: number,
  width: number,
): Float64Array {
  const product = new Float64Array(rows * width);
  for (let i = 0; i < Math.min(rows, width); i++) product[i * width + i] = 1;
  for (let k = reflections.length - 1; k >= 0; k--) {
    const { tau, v } = reflections[k]!;
    if (tau === 0) continue;
    // Rows before it are those of the unit matrix, and are 0 where v is not.
    for (let row = first + k; row < rows; row++) {
      const at = row * width + first + k;
      addProduct(product, at, -tau * dot(product, at, v), v);
    }
  }
  return product;
}
