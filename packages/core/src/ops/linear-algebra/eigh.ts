/** Eigenvalues and eigenvectors of symmetric matrices. */

import { tidy } from "../../device/scope";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { type Backward, isTaping, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { symmetricEigen } from "../matrix-algorithms/symmetric";
import { squeeze } from "../shape/extents";
import { transpose } from "../shape/shape";
import { byMatrix, checkTriangle } from "./by-matrix";
import { checkSquare, inFull } from "./check-matrices";
import type { TriangleOptions } from "./cholesky";
import { gaps, isDiagonal, partsOf, quotient } from "./packed-rows";

/** What `eigh` found. */
export interface Eigen {
  /** [..., n], ascending. */
  readonly eigenvalues: Tensor;
  /** `[..., n, n]`: the columns, each of length 1 and of either sign. */
  readonly eigenvectors: Tensor;
}

/**
 * Eigenvalues L and eigenvectors V of symmetric matrices x = V diag(L) transpose(V), [..., n, n] of f32 or f64. Only one triangle of x is
 * read, by default the lower one. The gradient is symmetric; that of eigenvectors of equal eigenvalues is not finite. As torch.linalg.eigh.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for NaN or infinity; UNSUPPORTED on webgpu
 * @example
 * const { eigenvalues, eigenvectors } = eigh(tensor([[2, 1], [1, 2]])); // 1 and 3
 */
export function eigh(x: Tensor, options: TriangleOptions = {}): Eigen {
  const samples = overSamples(eigh, x, options);
  if (samples) return samples;
  checkOptions("eigh", options, { upper: "boolean" });
  return inFull("eigh", [x], (matrix) => tidy(() => eigenOf("eigh", matrix!, options)));
}

/**
 * The eigenvalues [..., n], ascending, of symmetric matrices [..., n, n] of f32 or f64. As torch.linalg.eigvalsh; see `eigh`.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for NaN or infinity; UNSUPPORTED on webgpu
 * @example
 * eigvalsh(tensor([[2, 1], [1, 2]])); // [1, 3]
 */
export function eigvalsh(x: Tensor, options: TriangleOptions = {}): Tensor {
  const samples = overSamples(eigvalsh, x, options);
  if (samples) return samples;
  const where = "eigvalsh";
  checkOptions(where, options, { upper: "boolean" });
  return inFull(where, [x], (matrix) =>
    tidy(() => {
      if (matrix!.requiresGrad && isTaping()) return eigenOf(where, matrix!, options).eigenvalues;
      checkSquare(where, matrix);
      const n = matrix.shape.at(-1)!;
      const read = options.upper ? transpose(matrix) : matrix;
      const [values] = byMatrix(where, read, [[n]], (a, [result], kernels) => {
        checkTriangle(where, a, n);
        result!.set(symmetricEigen(a, n, false, kernels).values);
      });
      return values!;
    }),
  );
}

function eigenOf(where: string, x: Tensor, { upper = false }: TriangleOptions): Eigen {
  checkSquare(where, x);
  const n = x.shape.at(-1)!;
  const read = upper ? transpose(x) : x;
  const [rows] = byMatrix(where, read, [[n, 1 + n]], (a, [result], kernels) => {
    checkTriangle(where, a, n);
    const { values, vectors } = symmetricEigen(a, n, true, kernels);
    for (let i = 0; i < n; i++) {
      result![i * (n + 1)] = values[i]!;
      result!.set(vectors.subarray(i * n, i * n + n), i * (n + 1) + 1);
    }
  });
  const packed = record("eigh", rows!, [read], [rows!], backwardOf(n));
  const [values, vectors] = partsOf(packed, [1, n]) as [Tensor, Tensor];
  return { eigenvalues: squeeze(values, -1), eigenvectors: transpose(vectors) };
}

const backwardOf =
  (n: number): Backward =>
  (g, [rows]) => [gradient(g, rows!, n)];

/** V (skew(transpose(V) gV) / (L_j - L_i) + diag(gL)) transpose(V), of rows [L | transpose(V)]. */
function gradient(g: Tensor, packed: Tensor, n: number): Tensor {
  const [values, vectors] = partsOf(packed, [1, n]) as [Tensor, Tensor];
  const [ofValues, ofVectors] = partsOf(g, [1, n]) as [Tensor, Tensor];
  const product = matmul(vectors, ofVectors, { transposeB: true });
  const skew = elementwise("mul", [elementwise("sub", [product, transpose(product)]), 0.5]);
  const turning = quotient(skew, gaps(transpose(values), n));
  const inner = elementwise("select", [isDiagonal(n, g), ofValues, turning]);
  return matmul(matmul(vectors, inner, { transposeA: true }), vectors);
}
