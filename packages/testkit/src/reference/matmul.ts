/** Matrix product in float64, by its definition. */

export interface MatmulShape {
  readonly batch: number;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly strideA: number;
  readonly strideB: number;
  readonly transposeA: boolean;
  readonly transposeB: boolean;
}

/** C[i, j] = sum over p of op(A)[i, p] op(B)[p, j], and the sum of the magnitudes of its finite terms. */
export function matmul(a: ArrayLike<number>, b: ArrayLike<number>, shape: MatmulShape) {
  const { batch, m, n, k, strideA, strideB, transposeA, transposeB } = shape;
  const product = new Float64Array(batch * m * n);
  let magnitude = 0;
  for (let at = 0; at < product.length; at++) {
    const j = at % n;
    const i = Math.floor(at / n) % m;
    const matrix = Math.floor(at / (n * m));
    let sum = 0;
    let magnitudes = 0;
    for (let p = 0; p < k; p++) {
      const left = a[matrix * strideA + (transposeA ? p * m + i : i * k + p)]!;
      const right = b[matrix * strideB + (transposeB ? j * k + p : p * n + j)]!;
      sum += left * right;
      if (Number.isFinite(left * right)) magnitudes += Math.abs(left * right);
    }
    product[at] = sum;
    magnitude = Math.max(magnitude, magnitudes);
  }
  return { product, magnitude };
}
