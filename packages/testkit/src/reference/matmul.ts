/** Matrix product by its definition: chains of fused multiply-adds over pieces of k. */
import { type ComputeDType, fma32, fma64, LONGEST_CHAIN } from "@opt/core/backend";

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

/** C[i, j] = sum over p of op(A)[i, p] op(B)[p, j], and the largest sum of the magnitudes of an element's finite terms. */
export function matmul(a: ArrayLike<number>, b: ArrayLike<number>, shape: MatmulShape, dtype: ComputeDType) {
  const { batch, m, n, k, strideA, strideB, transposeA, transposeB } = shape;
  const product = dtype === "f32" ? new Float32Array(batch * m * n) : new Float64Array(batch * m * n);
  const fma = dtype === "f32" ? fma32 : fma64;
  const pieces = Math.ceil(k / LONGEST_CHAIN[dtype]);
  let magnitude = 0;
  for (let at = 0; at < product.length; at++) {
    const j = at % n;
    const i = Math.floor(at / n) % m;
    const matrix = Math.floor(at / (n * m));
    let magnitudes = 0;
    for (let piece = 0; piece < pieces; piece++) {
      let sum = 0;
      for (let p = Math.floor((k * piece) / pieces); p < Math.floor((k * (piece + 1)) / pieces); p++) {
        const left = a[matrix * strideA + (transposeA ? p * m + i : i * k + p)]!;
        const right = b[matrix * strideB + (transposeB ? j * k + p : p * n + j)]!;
        sum = fma(left, right, sum);
        if (Number.isFinite(left * right)) magnitudes += Math.abs(left * right);
      }
      product[at] = piece === 0 ? sum : product[at]! + sum;
    }
    magnitude = Math.max(magnitude, magnitudes);
  }
  return { product, magnitude };
}
