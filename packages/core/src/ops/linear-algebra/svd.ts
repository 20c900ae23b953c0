/** Singular values and vectors. */

import type { HostKernels } from "../../backend/host-kernels";
import { tidy } from "../../device/scope";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { type Backward, isTaping, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { type Singular, singular } from "../matrix-algorithms/singular";
import { squeeze } from "../shape/extents";
import { concat, transpose } from "../shape/shape";
import { byMatrix, checkFinite, turned } from "./by-matrix";
import { checkMatrices, inFull } from "./check-matrices";
import { gaps, isDiagonal, partsOf, quotient } from "./packed-rows";

export interface SvdOptions {
  /** Whether u and vh are square. Default true; false gives min(m, n) vectors of each. */
  readonly fullMatrices?: boolean;
}

/** What `svd` found: x = u diag(s) vh. */
export interface Svd {
  /** [..., m, m], or [..., m, k]: columns of length 1. */
  readonly u: Tensor;
  /** [..., k] with k = min(m, n), descending. */
  readonly s: Tensor;
  /** [..., n, n], or [..., k, n]: rows of length 1. */
  readonly vh: Tensor;
}

/**
 * The singular value decomposition x = u diag(s) vh of matrices [..., m, n] of f32 or f64. Vectors are of either sign, with u and vh in
 * agreement. The gradient of vectors of equal singular values is not finite; those that `fullMatrices` adds have none. As torch.linalg.svd.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for NaN or infinity; UNSUPPORTED on webgpu
 * @example
 * const { u, s, vh } = svd(tensor([[3, 0], [0, -2]])); // s: [3, 2]
 */
export function svd(x: Tensor, options: SvdOptions = {}): Svd {
  const samples = overSamples(svd, x, options);
  if (samples) return samples;
  checkOptions("svd", options, { fullMatrices: "boolean" });
  return inFull("svd", [x], (matrix) => tidy(() => decomposed("svd", matrix!, options.fullMatrices ?? true)));
}

/**
 * The singular values [..., min(m, n)], descending, of matrices [..., m, n] of f32 or f64. As torch.linalg.svdvals; see `svd`.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for NaN or infinity; UNSUPPORTED on webgpu
 * @example
 * svdvals(tensor([[3, 0], [0, -2]])); // [3, 2]
 */
export function svdvals(x: Tensor): Tensor {
  const samples = overSamples(svdvals, x);
  if (samples) return samples;
  const where = "svdvals";
  return inFull(where, [x], (matrix) =>
    tidy(() => {
      if (matrix!.requiresGrad && isTaping()) return decomposed(where, matrix!, false).s;
      checkMatrices(where, matrix);
      const [m, n] = matrix.shape.slice(-2) as [number, number];
      const [values] = byMatrix(where, matrix, [[Math.min(m, n)]], (a, [result], kernels) => {
        result!.set(singularOf(where, a, m, n, "values", kernels).values);
      });
      return values!;
    }),
  );
}

/** Of a [m, n] of either form. Vectors are rows, all of them with "full". */
export function singularOf(
  where: string,
  a: Float64Array,
  m: number,
  n: number,
  vectors: "values" | "reduced" | "full",
  kernels?: HostKernels,
): Singular {
  checkFinite(where, a);
  const [long, short] = [Math.max(m, n), Math.min(m, n)];
  const lefts = { values: 0, reduced: short, full: long }[vectors];
  const { values, left, right } = singular(m < n ? turned(a, m, n) : a, long, short, lefts, kernels);
  return m < n ? { values, left: right, right: left } : { values, left, right };
}

function decomposed(where: string, x: Tensor, full: boolean): Svd {
  checkMatrices(where, x);
  const [m, n] = x.shape.slice(-2) as [number, number];
  const k = Math.min(m, n);
  const widths = [m, 1, n];
  const width = m + 1 + n;
  const [lefts, rights] = full ? [m - k, n - k] : [0, 0];
  const shapes = [
    [k, width],
    [lefts, m],
    [rights, n],
  ];
  const [rows, moreLeft, moreRight] = byMatrix(where, x, shapes, (a, [result, moreLeft, moreRight], kernels) => {
    const { values, left, right } = singularOf(where, a, m, n, full ? "full" : "reduced", kernels);
    for (let i = 0; i < k; i++) {
      result!.set(left.subarray(i * m, i * m + m), i * width);
      result![i * width + m] = values[i]!;
      result!.set(right.subarray(i * n, i * n + n), i * width + m + 1);
    }
    moreLeft!.set(left.subarray(k * m, (k + lefts) * m));
    moreRight!.set(right.subarray(k * n, (k + rights) * n));
  });
  const packed = record("svd", rows!, [x], [rows!], backwardOf(widths));
  const [left, values, right] = partsOf(packed, widths) as [Tensor, Tensor, Tensor];
  return {
    u: transpose(lefts > 0 ? concat([left, moreLeft!], -2) : left),
    s: squeeze(values, -1),
    vh: rights > 0 ? concat([right, moreRight!], -2) : right,
  };
}

const backwardOf =
  (widths: readonly number[]): Backward =>
  (g, [rows]) => [gradient(g, rows!, widths)];

/**
 * U ((skew(U' gU) / E) S + S (skew(V' gV) / E) + diag(gS)) V' with E = s_j^2 - s_i^2, and what leaves the planes of U and V. Of rows
 * [U' | s | V'].
 */
function gradient(g: Tensor, packed: Tensor, widths: readonly number[]): Tensor {
  const [left, s, right] = partsOf(packed, widths) as [Tensor, Tensor, Tensor];
  const [ofLeft, ofS, ofRight] = partsOf(g, widths) as [Tensor, Tensor, Tensor];
  const k = packed.shape.at(-2)!;
  const row = transpose(s);
  const e = gaps(elementwise("mul", [row, row]), k);
  const turning = (vectors: Tensor, of: Tensor) => {
    const product = matmul(vectors, of, { transposeB: true });
    return quotient(elementwise("sub", [product, transpose(product)]), e);
  };
  const both = elementwise("add", [
    elementwise("mul", [turning(left, ofLeft), row]),
    elementwise("mul", [turning(right, ofRight), s]),
  ]);
  const inner = elementwise("select", [isDiagonal(k, g), ofS, both]);
  const parts = [matmul(matmul(left, inner, { transposeA: true }), right)];
  const outside = (vectors: Tensor, of: Tensor) => {
    const scaled = quotient(of, s);
    return elementwise("sub", [scaled, matmul(matmul(scaled, vectors, { transposeB: true }), vectors)]);
  };
  if (widths[0]! > k) parts.push(matmul(outside(left, ofLeft), right, { transposeA: true }));
  if (widths[2]! > k) parts.push(matmul(left, outside(right, ofRight), { transposeA: true }));
  return parts.reduce((sum, part) => elementwise("add", [sum, part]));
}
