/** The error function in float64, the definition that every device's erf is measured against. */

const TWO_OVER_SQRT_PI = 2 / Math.sqrt(Math.PI);

/** erf(x) = 2/sqrt(pi) * integral from 0 to x of exp(-t^2), to a few units in the last place of float64 (DLMF 7.6.2, 7.9.3). */
export function erf(x: number): number {
  const z = Math.abs(x);
  if (Number.isNaN(z)) return Number.NaN;
  if (z >= 6) return Math.sign(x); // 1 - erf(6) = 2.2e-17
  if (z < 1e-8) return TWO_OVER_SQRT_PI * x;
  return z < 2.5 ? Math.sign(x) * series(z) : Math.sign(x) * (1 - complementByContinuedFraction(z));
}

/** exp(-z^2) * 2z/sqrt(pi) * sum of (2 z^2)^n / (1 * 3 * ... * (2n + 1)): all terms are positive. */
function series(z: number): number {
  const twoSquares = 2 * z * z;
  let term = 1;
  let sum = 1;
  for (let n = 1; term > sum * 1e-17; n++) {
    term *= twoSquares / (2 * n + 1);
    sum += term;
  }
  return Math.exp(-z * z) * TWO_OVER_SQRT_PI * z * sum;
}

/** erfc(z) = exp(-z^2)/sqrt(pi) * 1/(z + (1/2)/(z + (2/2)/(z + (3/2)/(z + ...)))). */
function complementByContinuedFraction(z: number): number {
  let tail = z;
  for (let n = 60; n >= 1; n--) tail = z + n / 2 / tail;
  return Math.exp(-z * z) / (Math.sqrt(Math.PI) * tail);
}
