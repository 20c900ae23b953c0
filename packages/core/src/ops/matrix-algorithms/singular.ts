/** Singular values and vectors, in float64: bidiagonal by reflections, then diagonal by implicit QR rounds (Golub and Reinsch 1970). */
import { check } from "../../errors/errors";
import { addProduct, dot, productRows, type Reflection, reflection } from "./reflectors";
import { hypotenuse, rotatePair, rotateRows, type Sweep } from "./rotations";

interface Bidiagonal {
  readonly diagonal: Float64Array;
  /** Element i is right of diagonal i; the last one is 0. */
  readonly beside: Float64Array;
  readonly left: readonly Reflection[];
  readonly right: readonly Reflection[];
}

/** Of a [m, n] with m >= n, which is overwritten. */
function bidiagonal(a: Float64Array, m: number, n: number): Bidiagonal {
  const [diagonal, beside] = [new Float64Array(n), new Float64Array(n)];
  const [left, right]: [Reflection[], Reflection[]] = [[], []];
  for (let i = 0; i < n; i++) {
    const column = reflection(Float64Array.from({ length: m - i }, (_, r) => a[(i + r) * n + i]!));
    diagonal[i] = column.beta;
    left.push(column);
    const length = n - i - 1;
    if (length === 0) break;
    const sums = new Float64Array(length);
    for (let r = i; r < m; r++) addTo(sums, a, r * n + i + 1, column.v[r - i]!);
    const first = a.slice(i * n + i + 1, i * n + n);
    addProduct(first, 0, -column.tau, sums);
    const row = reflection(first);
    beside[i] = row.beta;
    right.push(row);
    for (let r = i + 1; r < m; r++) {
      const at = r * n + i + 1;
      addProduct(a, at, -column.tau * column.v[r - i]!, sums);
      addProduct(a, at, -row.tau * dot(a, at, row.v), row.v);
    }
  }
  return { diagonal, beside, left, right };
}

/** Adds the product of `factor` and the elements of a from `at` on. */
function addTo(sums: Float64Array, a: Float64Array, at: number, factor: number): void {
  for (let j = 0; j < sums.length; j++) sums[j] = sums[j]! + factor * a[at + j]!;
}

/** What takes the rotations: rows of left and of right vectors. */
interface Rows {
  readonly left: Float64Array;
  readonly leftWidth: number;
  readonly right: Float64Array;
}

/** Rounds for one singular value: it takes two or three. */
const MOST_ROUNDS = 80;
const TINY = 2 ** -966;
const EPSILON = 2 ** -52;

/** The diagonal s becomes the singular values, of either sign and in no order; e is what is right of it. */
function diagonalize(s: Float64Array, e: Float64Array, rows: Rows | null): void {
  const n = s.length;
  const ofLeft: Sweep = { cosines: new Float64Array(n), sines: new Float64Array(n) };
  const ofRight: Sweep = { cosines: new Float64Array(n), sines: new Float64Array(n) };
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
      chase(s, e, first, last, ofLeft, ofRight);
      if (rows === null) continue;
      rotateRows(rows.left, rows.leftWidth, ofLeft, first, last - first, 1);
      rotateRows(rows.right, n, ofRight, first, last - first, 1);
      continue;
    }
    s[zero] = 0;
    if (zero === last) clearColumn(s, e, first, last, rows);
    else clearRow(s, e, zero, last, rows);
  }
}

/** One round with a shift, from `first` to `last`. */
function chase(s: Float64Array, e: Float64Array, first: number, last: number, left: Sweep, right: Sweep): void {
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
    right.cosines[j - first] = cs;
    right.sines[j - first] = sn;
    t = hypotenuse(f, g);
    cs = t === 0 ? 1 : f / t;
    sn = t === 0 ? 0 : g / t;
    s[j] = t;
    f = cs * e[j]! + sn * s[j + 1]!;
    s[j + 1] = cs * s[j + 1]! - sn * e[j]!;
    g = sn * e[j + 1]!;
    e[j + 1] = cs * e[j + 1]!;
    left.cosines[j - first] = cs;
    left.sines[j - first] = sn;
  }
  e[last - 1] = f;
}

/** Diagonal `last` is 0: what is above it goes, by rotations of right vectors. */
function clearColumn(s: Float64Array, e: Float64Array, first: number, last: number, rows: Rows | null): void {
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
    if (rows !== null) rotatePair(rows.right, s.length, j, last, cs, sn);
  }
}

/** Diagonal `zero` is 0: what is right of it goes, by rotations of left vectors. */
function clearRow(s: Float64Array, e: Float64Array, zero: number, last: number, rows: Rows | null): void {
  let f = e[zero]!;
  e[zero] = 0;
  for (let j = zero + 1; j <= last; j++) {
    const t = hypotenuse(s[j]!, f);
    const [cs, sn] = t === 0 ? [1, 0] : [s[j]! / t, f / t];
    s[j] = t;
    f = -sn * e[j]!;
    e[j] = cs * e[j]!;
    if (rows !== null) rotatePair(rows.left, rows.leftWidth, j, zero, cs, sn);
  }
}

/** Descending singular values, and vectors as rows: `left` of m elements, `right` of n. */
export interface Singular {
  readonly values: Float64Array;
  readonly left: Float64Array;
  readonly right: Float64Array;
}

/** Of a [m, n] with m >= n, which is overwritten. @param lefts rows of left vectors: n, or all m. Of 0 rows there are no vectors at all */
export function singular(a: Float64Array, m: number, n: number, lefts: number): Singular {
  const { diagonal, beside, left, right } = bidiagonal(a, m, n);
  const needsVectors = lefts > 0;
  const rows = needsVectors
    ? { left: productRows(left, 0, lefts, m), leftWidth: m, right: productRows(right, 1, n, n) }
    : null;
  diagonalize(diagonal, beside, rows);
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
