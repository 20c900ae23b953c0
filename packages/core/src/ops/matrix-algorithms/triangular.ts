/** A = Q R by reflections, and P A = L U by Gauss' elimination, in float64. */
import type { HostKernels } from "../../backend/host-kernels";
import { noReflections, productRows, type Reflections, reflect, reflectRows, vectorOf } from "./reflectors";

/** Columns that are reflected one by one. */
const FEW = 4;

/** The reflections of a matrix [m, n], whose columns are given as rows [n, m]: these become the columns of R. */
function reflections(columns: Float64Array, m: number, n: number, kernels?: HostKernels): Reflections {
  const count = Math.min(m, n);
  const all = noReflections(count, 0, m);
  const given = { ...all, rows: columns, backwards: false };
  const run = kernels?.reflectRows ?? reflectRows;
  // The first half, which then reflects the second one at once.
  const factor = (begin: number, end: number): void => {
    if (end - begin > FEW) {
      const middle = (begin + end) >> 1;
      factor(begin, middle);
      run({ ...given, from: middle, to: end, begin, end: middle });
      factor(middle, end);
      return;
    }
    for (let j = begin; j < end; j++) {
      const column = columns.subarray(j * m + j, j * m + m);
      vectorOf(all, j).set(column);
      column.fill(0);
      column[0] = reflect(all, j);
      reflectRows({ ...given, from: j + 1, to: end, begin: j, end: j + 1 });
    }
  };
  factor(0, count);
  if (n > count) run({ ...given, from: count, to: n, begin: 0, end: count });
  return all;
}

/** The first k columns of Q as rows of m elements. The columns of a [m, n], given as rows [n, m], become those of R. */
export function orthogonal(
  columns: Float64Array,
  m: number,
  n: number,
  k: number,
  kernels?: HostKernels,
): Float64Array {
  return productRows(reflections(columns, m, n, kernels), k, kernels);
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
