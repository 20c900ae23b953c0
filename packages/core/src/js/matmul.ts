/** Batched matrix product, accumulated in float64. */
import type { LaunchArguments, Specs } from "../backend/spec";
import { elements } from "./memory";

export function matmul(
  { dtype, transposeA, transposeB }: Specs["matmul"],
  { a, b, output, batch, m, n, k, strideA, strideB }: LaunchArguments["matmul"],
): void {
  const A = elements(a, dtype);
  const B = elements(b, dtype);
  const C = elements(output, dtype);
  const [rowStep, innerStep] = transposeA ? [1, m] : [k, 1];
  const row = new Float64Array(n);
  for (let t = 0; t < batch; t++) {
    const originB = t * strideB;
    for (let i = 0; i < m; i++) {
      const originA = t * strideA + i * rowStep;
      if (transposeB) {
        for (let j = 0; j < n; j++) {
          let sum = 0;
          for (let p = 0; p < k; p++) sum += A[originA + p * innerStep]! * B[originB + j * k + p]!;
          row[j] = sum;
        }
      } else {
        row.fill(0);
        for (let p = 0; p < k; p++) {
          const x = A[originA + p * innerStep]!;
          const rowB = originB + p * n;
          for (let j = 0; j < n; j++) row[j]! += x * B[rowB + j]!;
        }
      }
      C.set(row, (t * m + i) * n);
    }
  }
}
