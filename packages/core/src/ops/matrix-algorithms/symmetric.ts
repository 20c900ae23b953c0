/** Eigenvalues and eigenvectors of symmetric matrices, in float64: tridiagonal by reflections, then diagonal by implicit QL rounds. */
import type { HostKernels, TridiagonalUpdate } from "../../backend/host-kernels";
import { check } from "../../errors/errors";
import { noReflections, productRows, type Reflections, reflect, vectorOf } from "./reflectors";
import { hypotenuse, Rotations } from "./rotations";

interface Tridiagonal {
  readonly diagonal: Float64Array;
  /** Element i is beside diagonal i and i + 1; the last one is 0. */
  readonly beside: Float64Array;
  readonly reflections: Reflections;
}

/** Of the lower triangle of a [n, n], which is overwritten. */
function tridiagonal(a: Float64Array, n: number, kernels?: HostKernels): Tridiagonal {
  const [diagonal, beside] = [new Float64Array(n), new Float64Array(n)];
  const reflections = noReflections(Math.max(n - 1, 0), 1, n);
  const run = kernels?.tridiagonalUpdate ?? tridiagonalUpdate;
  // What the last reflection takes off: v transpose(w) + w transpose(v), done while the next one reads.
  let v: Float64Array = new Float64Array(n);
  let w: Float64Array = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const [v0, w0, length] = [v[0]!, w[0]!, n - i - 1];
    diagonal[i] = a[i * n + i]! - 2 * v0 * w0;
    if (length === 0) break;
    const u = vectorOf(reflections, i);
    for (let r = 0; r < length; r++) u[r] = a[(i + 1 + r) * n + i]! - (v[r + 1]! * w0 + w[r + 1]! * v0);
    beside[i] = reflect(reflections, i);
    const tau = reflections.taus[i]!;
    const product = new Float64Array(length);
    run({ a, n, length, v: v.subarray(1), w: w.subarray(1), u, product });
    let along = 0;
    for (let r = 0; r < length; r++) along += product[r]! * u[r]!;
    for (let r = 0; r < length; r++) product[r] = tau * (product[r]! - 0.5 * tau * along * u[r]!);
    [v, w] = [u, product];
  }
  return { diagonal, beside, reflections };
}

export function tridiagonalUpdate({ a, n, length, v, w, u, product }: TridiagonalUpdate): void {
  for (let r = 0; r < length; r++) {
    const at = (n - length + r) * n + n - length;
    const [vr, wr, ur] = [v[r]!, w[r]!, u[r]!];
    const whole = r & ~3;
    let [s0, s1, s2, s3] = [0, 0, 0, 0];
    for (let c = 0; c < whole; c += 4) {
      const x0 = a[at + c]! - (vr * w[c]! + wr * v[c]!);
      const x1 = a[at + c + 1]! - (vr * w[c + 1]! + wr * v[c + 1]!);
      const x2 = a[at + c + 2]! - (vr * w[c + 2]! + wr * v[c + 2]!);
      const x3 = a[at + c + 3]! - (vr * w[c + 3]! + wr * v[c + 3]!);
      a[at + c] = x0;
      a[at + c + 1] = x1;
      a[at + c + 2] = x2;
      a[at + c + 3] = x3;
      s0 += x0 * u[c]!;
      s1 += x1 * u[c + 1]!;
      s2 += x2 * u[c + 2]!;
      s3 += x3 * u[c + 3]!;
      product[c] = product[c]! + x0 * ur;
      product[c + 1] = product[c + 1]! + x1 * ur;
      product[c + 2] = product[c + 2]! + x2 * ur;
      product[c + 3] = product[c + 3]! + x3 * ur;
    }
    for (let c = whole; c < r; c++) {
      const x = a[at + c]! - (vr * w[c]! + wr * v[c]!);
      a[at + c] = x;
      s0 += x * u[c]!;
      product[c] = product[c]! + x * ur;
    }
    const x = a[at + r]! - (vr * wr + wr * vr);
    a[at + r] = x;
    product[r] = s0 + s1 + (s2 + s3) + x * ur;
  }
}

/** Rounds for one eigenvalue: it takes two or three. */
const MOST_ROUNDS = 60;

/** The diagonal becomes the eigenvalues. */
function diagonalize(d: Float64Array, e: Float64Array, ofVectors: Rotations | null): void {
  const n = d.length;
  // Rounds underflow in a part that is far smaller than the whole, and would never end.
  let largest = 0;
  for (let i = 0; i < n; i++) largest = Math.max(largest, Math.abs(d[i]!), Math.abs(e[i]!));
  const negligible = largest * Number.EPSILON ** 2;
  for (let l = 0; l < n; l++) {
    for (let round = 0; ; round++) {
      let m = l;
      while (
        m < n - 1 &&
        Math.abs(e[m]!) > Math.max(negligible, Number.EPSILON * 0.5 * (Math.abs(d[m]!) + Math.abs(d[m + 1]!)))
      )
        m++;
      if (m === l) break;
      check(round < MOST_ROUNDS, "BAD_ARGUMENT", "eigh", () => "the eigenvalues do not converge.", "Scale the matrix.");
      // Wilkinson's shift.
      let g = (d[l + 1]! - d[l]!) / (2 * e[l]!);
      let r = hypotenuse(g, 1);
      g = d[m]! - d[l]! + e[l]! / (g + (g < 0 ? -r : r));
      let [s, c, p] = [1, 1, 0];
      let i = m - 1;
      for (; i >= l; i--) {
        const [f, b] = [s * e[i]!, c * e[i]!];
        r = hypotenuse(f, g);
        e[i + 1] = r;
        if (r === 0) {
          d[i + 1] = d[i + 1]! - p;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1]! - p;
        r = (d[i]! - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        ofVectors?.add(i + 1, i, c, s);
      }
      if (i >= l) continue;
      d[l] = d[l]! - p;
      e[l] = g;
      e[m] = 0;
    }
  }
}

/** Ascending eigenvalues of the lower triangle of a [n, n], which is overwritten, and the eigenvectors as rows. */
export function symmetricEigen(
  a: Float64Array,
  n: number,
  needsVectors: boolean,
  kernels?: HostKernels,
): { values: Float64Array; vectors: Float64Array } {
  const { diagonal, beside, reflections } = tridiagonal(a, n, kernels);
  const rows = needsVectors ? productRows(reflections, n, kernels) : new Float64Array(0);
  const ofVectors = needsVectors ? new Rotations(rows, n, kernels) : null;
  diagonalize(diagonal, beside, ofVectors);
  ofVectors?.finish();
  const order = Array.from(diagonal.keys()).sort((i, k) => diagonal[i]! - diagonal[k]! || i - k);
  const vectors = new Float64Array(rows.length);
  if (needsVectors)
    for (const [to, from] of order.entries()) vectors.set(rows.subarray(from * n, from * n + n), to * n);
  return { values: Float64Array.from(order, (i) => diagonal[i]!), vectors };
}
