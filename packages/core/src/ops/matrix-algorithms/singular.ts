/** Singular values and vectors, in float64: bidiagonal by reflections, then diagonal by implicit QR rounds (Golub and Reinsch 1970). */
import type { BidiagonalUpdate, HostKernels, SumOfRows } from "../../backend/host-kernels";
import { check } from "../../errors/errors";
import { addProduct, dot, noReflections, productRows, type Reflections, reflect, vectorOf } from "./reflectors";
import { hypotenuse, Rotations } from "./rotations";

interface Bidiagonal {
  readonly diagonal: Float64Array;
  /** Element i is right of diagonal i; the last one is 0. */
  readonly beside: Float64Array;
  readonly left: Reflections;
  readonly right: Reflections;
}

/** Of a [m, n] with m >= n, which is overwritten. */
function bidiagonal(a: Float64Array, m: number, n: number, kernels?: HostKernels): Bidiagonal {
  const [diagonal, beside] = [new Float64Array(n), new Float64Array(n)];
  const [left, right] = [noReflections(n, 0, m), noReflections(Math.max(n - 1, 0), 1, n)];
  const [addUp, update] = [kernels?.sumOfRows ?? sumOfRows, kernels?.bidiagonalUpdate ?? bidiagonalUpdate];
  for (let i = 0; i < n; i++) {
    const factors = vectorOf(left, i);
    for (let r = 0; r < factors.length; r++) factors[r] = a[(i + r) * n + i]!;
    diagonal[i] = reflect(left, i);
    const length = n - i - 1;
    if (length === 0) break;
    const [scale, sums, start] = [-left.taus[i]!, new Float64Array(length), i * n + i + 1];
    addUp({ a, start, width: n, count: m - i, length, factors, sums });
    const v = vectorOf(right, i);
    v.set(a.subarray(start, start + length));
    addProduct(v, 0, scale, sums, 0, length);
    beside[i] = reflect(right, i);
    const below = { a, start: start + n, width: n, count: m - i - 1, length, factors: factors.subarray(1), sums };
    update({ ...below, scale, tau: right.taus[i]!, v });
  }
  return { diagonal, beside, left, right };
}

export function sumOfRows({ a, start, width, count, length, factors, sums }: SumOfRows): void {
  for (let r = 0; r < count; r++) addProduct(sums, 0, factors[r]!, a, start + r * width, length);
}

export function bidiagonalUpdate({
  a,
  start,
  width,
  count,
  length,
  factors,
  sums,
  scale,
  tau,
  v,
}: BidiagonalUpdate): void {
  for (let r = 0; r < count; r++) {
    const at = start + r * width;
    addProduct(a, at, scale * factors[r]!, sums, 0, length);
    addProduct(a, at, -tau * dot(a, at, v, 0, length), v, 0, length);
  }
}

/** What rotates the left and the right vectors. */
interface Turning {
  readonly left: Rotations;
  readonly right: Rotations;
}

/** Rounds for one singular value: it takes two or three. */
const MOST_ROUNDS = 80;
const TINY = 2 ** -966;
const EPSILON = 2 ** -52;

/** The diagonal s becomes the singular values, of either sign and in no order; e is what is right of it. */
function diagonalize(s: Float64Array, e: Float64Array, turning: Turning | null): void {
  const n = s.length;
  let rounds = 0;
  for (let last = n - 1; last >= 0; ) {
    let first = last;
    while (first > 0 && Math.abs(e[first - 1]!) > TINY + EPSILON * (Math.abs(s[first - 1]!) + Math.abs(s[first]!)))
      first--;
    if (first > 0) e[first - 1] = 0;
    if (first === last) {
      last--;
      rounds = 0;
      continue;
    }
    check(
      rounds++ < MOST_ROUNDS,
      "BAD_ARGUMENT",
      "svd",
      () => "the singular values do not converge.",
      "Scale the matrix.",
    );
    let zero = last;
    const isSmall = (k: number) => {
      const around = (k < last ? Math.abs(e[k]!) : 0) + (k > first ? Math.abs(e[k - 1]!) : 0);
      return Math.abs(s[k]!) <= TINY + EPSILON * around;
    };
    while (zero >= first && !isSmall(zero)) zero--;
    if (zero < first) {
      chase(s, e, first, last, turning);
      continue;
    }
    s[zero] = 0;
    if (zero === last) clearColumn(s, e, first, last, turning);
    else clearRow(s, e, zero, last, turning);
  }
}

/** One round with a shift, from `first` to `last`. */
function chase(s: Float64Array, e: Float64Array, first: number, last: number, turning: Turning | null): void {
  const all = [s[last]!, s[last - 1]!, e[last - 1]!, s[first]!, e[first]!];
  const scale = all.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  const [sp, sq, eq, sk, ek] = all.map((x) => x / scale) as [number, number, number, number, number];
  const b = ((sq + sp) * (sq - sp) + eq * eq) / 2;
  const c = sp * eq * (sp * eq);
  const root = Math.sqrt(b * b + c);
  const shift = b === 0 && c === 0 ? 0 : c / (b + (b < 0 ? -root : root));
  let f = (sk + sp) * (sk - sp) + shift;
  let g = sk * ek;
  for (let j = first; j < last; j++) {
    let t = hypotenuse(f, g);
    let cs = t === 0 ? 1 : f / t;
    let sn = t === 0 ? 0 : g / t;
    if (j > first) e[j - 1] = t;
    f = cs * s[j]! + sn * e[j]!;
    e[j] = cs * e[j]! - sn * s[j]!;
    g = sn * s[j + 1]!;
    s[j + 1] = cs * s[j + 1]!;
    turning?.right.add(j, j + 1, cs, sn);
    t = hypotenuse(f, g);
    cs = t === 0 ? 1 : f / t;
    sn = t === 0 ? 0 : g / t;
    s[j] = t;
    f = cs * e[j]! + sn * s[j + 1]!;
    s[j + 1] = cs * s[j + 1]! - sn * e[j]!;
    g = sn * e[j + 1]!;
    e[j + 1] = cs * e[j + 1]!;
    turning?.left.add(j, j + 1, cs, sn);
  }
  e[last - 1] = f;
}

/** Diagonal `last` is 0: what is above it goes, by rotations of right vectors. */
function clearColumn(s: Float64Array, e: Float64Array, first: number, last: number, turning: Turning | null): void {
  let f = e[last - 1]!;
  e[last - 1] = 0;
  for (let j = last - 1; j >= first; j--) {
    const t = hypotenuse(s[j]!, f);
    const [cs, sn] = t === 0 ? [1, 0] : [s[j]! / t, f / t];
    s[j] = t;
    if (j > first) {
      f = -sn * e[j - 1]!;
      e[j - 1] = cs * e[j - 1]!;
    }
    turning?.right.add(j, last, cs, sn);
  }
}

/** Diagonal `zero` is 0: what is right of it goes, by rotations of left vectors. */
function clearRow(s: Float64Array, e: Float64Array, zero: number, last: number, turning: Turning | null): void {
  let f = e[zero]!;
  e[zero] = 0;
  for (let j = zero + 1; j <= last; j++) {
    const t = hypotenuse(s[j]!, f);
    const [cs, sn] = t === 0 ? [1, 0] : [s[j]! / t, f / t];
    s[j] = t;
    f = -sn * e[j]!;
    e[j] = cs * e[j]!;
    turning?.left.add(j, zero, cs, sn);
  }
}

/** Descending singular values, and vectors as rows: `left` of m elements, `right` of n. */
export interface Singular {
  readonly values: Float64Array;
  readonly left: Float64Array;
  readonly right: Float64Array;
}

/** Of a [m, n] with m >= n, which is overwritten. @param lefts rows of left vectors: n, or all m. Of 0 rows there are no vectors at all */
export function singular(a: Float64Array, m: number, n: number, lefts: number, kernels?: HostKernels): Singular {
  const { diagonal, beside, left, right } = bidiagonal(a, m, n, kernels);
  const rows = lefts > 0 ? { left: productRows(left, lefts, kernels), right: productRows(right, n, kernels) } : null;
  const turning = rows && { left: new Rotations(rows.left, m, kernels), right: new Rotations(rows.right, n, kernels) };
  diagonalize(diagonal, beside, turning);
  turning?.left.finish();
  turning?.right.finish();
  const order = Array.from(diagonal.keys()).sort((i, k) => Math.abs(diagonal[k]!) - Math.abs(diagonal[i]!) || i - k);
  const values = Float64Array.from(order, (i) => Math.abs(diagonal[i]!));
  if (rows === null) return { values, left: new Float64Array(0), right: new Float64Array(0) };
  const sorted = { left: rows.left.slice(), right: new Float64Array(n * n) };
  for (const [to, from] of order.entries()) {
    sorted.left.set(rows.left.subarray(from * m, from * m + m), to * m);
    sorted.right.set(rows.right.subarray(from * n, from * n + n), to * n);
    if (diagonal[from]! < 0) for (let k = to * n; k < to * n + n; k++) sorted.right[k] = -sorted.right[k]!;
  }
  return { values, ...sorted };
}
