/** e^A of a square matrix, in float64: Taylor's series of A / 2^s, squared s times. */

/** Terms of the series: the next one is below an ulp for a norm of 1/4. */
const TERMS = 13;

/** Of a [n, n]: NaN unless all of it is finite. */
export function exponential(a: Float64Array, n: number): Float64Array {
  let largest = 0;
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let k = 0; k < n; k++) sum += Math.abs(a[i * n + k]!);
    largest = Math.max(largest, sum);
  }
  if (!Number.isFinite(largest)) return new Float64Array(n * n).fill(Number.NaN);
  let squarings = 0;
  let scale = 1;
  for (; largest * scale > 0.25; squarings++) scale /= 2;
  const scaled = a.map((x) => x * scale);
  let result = unit(n);
  // Horner's scheme: 1 + A (1 + A / 2 (1 + A / 3 (...))).
  for (let term = TERMS; term > 0; term--) {
    result = product(scaled, result, n).map((x) => x / term);
    for (let i = 0; i < n; i++) result[i * n + i] = result[i * n + i]! + 1;
  }
  for (let i = 0; i < squarings; i++) result = product(result, result, n);
  return result;
}

function unit(n: number): Float64Array {
  return Float64Array.from({ length: n * n }, (_, i) => (i % (n + 1) === 0 ? 1 : 0));
}

function product(a: Float64Array, b: Float64Array, n: number): Float64Array {
  const c = new Float64Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) {
      const factor = a[i * n + k]!;
      for (let j = 0; j < n; j++) c[i * n + j] = c[i * n + j]! + factor * b[k * n + j]!;
    }
  }
  return c;
}
