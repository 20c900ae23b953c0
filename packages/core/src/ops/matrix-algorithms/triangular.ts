/** A = Q R by reflections, and P A = L U by Gauss' elimination, in float64. */
import { productRows, type Reflection, reflection, reflectRows } from "./reflectors";

/** The reflections of the first columns of a [m, n], which becomes R. */
export function reflections(a: Float64Array, m: number, n: number): Reflection[] {
  return Array.from({ length: Math.min(m, n) }, (_, j) => {
    const made = reflection(Float64Array.from({ length: m - j }, (_, i) => a[(j + i) * n + j]!));
    a[j * n + j] = made.beta;
    for (let i = j + 1; i < m; i++) a[i * n + j] = 0;
    reflectRows(a, n, made, j, j + 1);
    return made;
  });
}

/** Q as rows, `columns` of m elements. a [m, n] becomes R. */
export function orthogonal(a: Float64Array, m: number, n: number, columns: number): Float64Array {
  return productRows(reflections(a, m, n), 0, columns, m);
}

/** The T [b, b] of H0 H1 ... = 1 - V T transpose(V), and V [m, b] (Schreiber and Van Loan 1989). */
export function compactForm(all: readonly Reflection[], m: number): { v: Float64Array; t: Float64Array } {
  const b = all.length;
  const [v, t] = [new Float64Array(m * b), new Float64Array(b * b)];
  for (const [j, { tau, v: own }] of all.entries()) {
    for (let i = 0; i < own.length; i++) v[(j + i) * b + j] = own[i]!;
    const products = Array.from({ length: j }, (_, k) => {
      const before = all[k]!.v;
      let sum = 0;
      for (let i = 0; i < own.length; i++) sum += before[j - k + i]! * own[i]!;
      return sum;
    });
    for (let i = 0; i < j; i++) {
      let sum = 0;
      for (let k = i; k < j; k++) sum += t[i * b + k]! * products[k]!;
      t[i * b + j] = -tau * sum;
    }
    t[j * b + j] = tau;
  }
  return { v, t };
}

/** Of a [m, n], which becomes U above the diagonal and the factors of L below it. @returns the rows of a in the order of their pivots */
export function eliminate(a: Float64Array, m: number, n: number): Int32Array {
  const order = Int32Array.from({ length: m }, (_, i) => i);
  for (let j = 0; j < Math.min(m, n); j++) {
    let pivot = j;
    for (let i = j + 1; i < m; i++) if (Math.abs(a[i * n + j]!) > Math.abs(a[pivot * n + j]!)) pivot = i;
    if (pivot !== j) {
      const row = a.slice(j * n, j * n + n);
      a.copyWithin(j * n, pivot * n, pivot * n + n);
      a.set(row, pivot * n);
      [order[j], order[pivot]] = [order[pivot]!, order[j]!];
    }
    const divisor = a[j * n + j]!;
    if (divisor === 0) continue;
    for (let i = j + 1; i < m; i++) {
      const factor = a[i * n + j]! / divisor;
      a[i * n + j] = factor;
      for (let k = j + 1; k < n; k++) a[i * n + k] = a[i * n + k]! - factor * a[j * n + k]!;
    }
  }
  return order;
}
