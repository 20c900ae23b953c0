/** Eigenvalues and eigenvectors of symmetric matrices, in float64: tridiagonal by reflections, then diagonal by implicit QL rounds. */
import { check } from "../../errors/errors";
import { productRows, type Reflection, reflection } from "./reflectors";
import { hypotenuse, rotateRows, type Sweep } from "./rotations";

interface Tridiagonal {
  readonly diagonal: Float64Array;
  /** Element i is beside diagonal i and i + 1; the last one is 0. */
  readonly beside: Float64Array;
  readonly reflections: readonly Reflection[];
}

/** Of the lower triangle of a [n, n], which is overwritten. */
function tridiagonal(a: Float64Array, n: number): Tridiagonal {
  const [diagonal, beside] = [new Float64Array(n), new Float64Array(n)];
  const reflections: Reflection[] = [];
  // What the last reflection takes off: v transpose(w) + w transpose(v), done while the next one reads.
  let v: Float64Array = new Float64Array(n);
  let w: Float64Array = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const [shift, length] = [v.length - (n - i), n - i - 1];
    const column = new Float64Array(length);
    for (let r = i; r < n; r++) {
      const value = a[r * n + i]! - (v[shift + r - i]! * w[shift]! + w[shift + r - i]! * v[shift]!);
      if (r === i) diagonal[i] = value;
      else column[r - i - 1] = value;
    }
    if (length === 0) break;
    const made = reflection(column);
    const { tau, v: u } = made;
    beside[i] = made.beta;
    reflections.push(made);
    const product = new Float64Array(length);
    const [before, beforeW] = [v.subarray(shift + 1), w.subarray(shift + 1)];
    for (let r = 0; r < length; r++) {
      const [at, vr, wr, ur] = [(r + i + 1) * n + i + 1, before[r]!, beforeW[r]!, u[r]!];
      let sum = 0;
      for (let c = 0; c < r; c++) {
        const value = a[at + c]! - (vr * beforeW[c]! + wr * before[c]!);
        a[at + c] = value;
        sum += value * u[c]!;
        product[c] = product[c]! + value * ur;
      }
      const value = a[at + r]! - 2 * vr * wr;
      a[at + r] = value;
      product[r] = product[r]! + sum + value * ur;
    }
    let along = 0;
    for (let r = 0; r < length; r++) along += product[r]! * u[r]!;
    for (let r = 0; r < length; r++) product[r] = tau * (product[r]! - 0.5 * tau * along * u[r]!);
    [v, w] = [u, product];
  }
  return { diagonal, beside, reflections };
}

/** Rounds for one eigenvalue: it takes two or three. */
const MOST_ROUNDS = 60;

/** The diagonal becomes the eigenvalues. `rotate` is told the rotations of each round, from row `start` upwards. */
function diagonalize(
  d: Float64Array,
  e: Float64Array,
  rotate: (sweep: Sweep, start: number, count: number) => void,
): void {
  const n = d.length;
  const sweep = { cosines: new Float64Array(n), sines: new Float64Array(n) };
  for (let l = 0; l < n; l++) {
    for (let round = 0; ; round++) {
      let m = l;
      while (m < n - 1 && Math.abs(e[m]!) > Number.EPSILON * 0.5 * (Math.abs(d[m]!) + Math.abs(d[m + 1]!))) m++;
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
        sweep.cosines[m - 1 - i] = c;
        sweep.sines[m - 1 - i] = s;
      }
      rotate(sweep, m, m - 1 - i);
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
): { values: Float64Array; vectors: Float64Array } {
  const { diagonal, beside, reflections } = tridiagonal(a, n);
  const rows = needsVectors ? productRows(reflections, 1, n, n) : new Float64Array(0);
  diagonalize(diagonal, beside, (sweep, start, count) => {
    if (needsVectors) rotateRows(rows, n, sweep, start, count, -1);
  });
  const order = Array.from(diagonal.keys()).sort((i, k) => diagonal[i]! - diagonal[k]! || i - k);
  const vectors = new Float64Array(rows.length);
  if (needsVectors)
    for (const [to, from] of order.entries()) vectors.set(rows.subarray(from * n, from * n + n), to * n);
  return { values: Float64Array.from(order, (i) => diagonal[i]!), vectors };
}
