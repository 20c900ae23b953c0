/** Triangular factors of matrices with swapped rows. */

import { tidy } from "../../device/scope";
import { overSamples } from "../../tensor/batching";
import { type Backward, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { eliminate } from "../matrix-algorithms/triangular";
import { concat, transpose } from "../shape/shape";
import { tril, triu } from "../shape/triangle";
import { byMatrix } from "./by-matrix";
import { checkMatrices, inFull } from "./check-matrices";
import { partsOf } from "./packed-rows";
import { inverseOfTriangle } from "./triangle";

/** What `lu` found: x = p l u. */
export interface Lu {
  /** `[..., m, m]`: a 1 in each row and each column. Without a gradient. */
  readonly p: Tensor;
  /** [..., m, k] with k = min(m, n): lower triangles with ones on the diagonal. */
  readonly l: Tensor;
  /** `[..., k, n]`: upper triangles. */
  readonly u: Tensor;
}

/**
 * The factors x = p l u of matrices [..., m, n] of f32 or f64, with the largest pivot of each column. As torch.linalg.lu.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * const { p, l, u } = lu(tensor([[0, 2], [4, 1]])); // u: [[4, 1], [0, 2]], l: the unit matrix, p swaps
 */
export function lu(x: Tensor): Lu {
  const samples = overSamples(lu, x);
  if (samples) return samples;
  return inFull("lu", [x], (matrix) => tidy(() => factored(matrix!)));
}

function factored(x: Tensor): Lu {
  checkMatrices("lu", x);
  const [m, n] = x.shape.slice(-2) as [number, number];
  const k = Math.min(m, n);
  const shapes = [
    [k, m + n],
    [m, m],
  ];
  const [rows, p] = byMatrix("lu", x, shapes, (a, [result, permutation]) => {
    const order = eliminate(a, m, n);
    for (let i = 0; i < m; i++) permutation![order[i]! * m + i] = 1;
    for (let j = 0; j < k; j++) {
      const at = j * (m + n);
      result![at + j] = 1;
      for (let i = j + 1; i < m; i++) result![at + i] = a[i * n + j]!;
      result!.set(a.subarray(j * n + j, j * n + n), at + m + j);
    }
  }) as [Tensor, Tensor];
  const packed = record("lu", rows, [x], [rows, p], backwardOf(m, n));
  const [left, u] = partsOf(packed, [m, n]) as [Tensor, Tensor];
  return { p, l: transpose(left), u };
}

const backwardOf =
  (m: number, n: number): Backward =>
  (g, [rows, p]) => [matmul(p!, gradient(g, rows!, m, n))];

/** Of the matrix with its rows in order, from rows [transpose(L) | U]: their square parts turn each other, the rest is solved. */
function gradient(g: Tensor, packed: Tensor, m: number, n: number): Tensor {
  const k = Math.min(m, n);
  const widths = [k, m - k, k, n - k];
  const [left, leftRest, upper, upperRest] = partsOf(packed, widths) as [Tensor, Tensor, Tensor, Tensor];
  const [ofLeft, ofLeftRest, ofUpper, ofUpperRest] = partsOf(g, widths) as [Tensor, Tensor, Tensor, Tensor];
  const less = (a: Tensor, b: Tensor) => elementwise("sub", [a, b]);
  const times = (a: Tensor, b: Tensor) => matmul(a, b, { transposeB: true });
  const below = tril(less(times(left, ofLeft), times(ofUpperRest, upperRest)), -1);
  const above = triu(less(times(ofUpper, upper), times(leftRest, ofLeftRest)));
  const ofInverse = transpose(inverseOfTriangle(transpose(left)));
  const square = matmul(ofInverse, elementwise("add", [below, above]));
  const inverseU = inverseOfTriangle(transpose(upper));
  const first = matmul(square, inverseU);
  if (m > n) return concat([first, matmul(transpose(ofLeftRest), inverseU)], -2);
  return concat([first, matmul(ofInverse, ofUpperRest)], -1);
}
