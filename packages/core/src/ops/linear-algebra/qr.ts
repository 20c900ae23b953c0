/** Orthogonal and triangular factors of matrices. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { type Backward, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { elementwise } from "../elementwise/elementwise";
import { fill } from "../map";
import { matmul } from "../matmul";
import { orthogonal } from "../matrix-algorithms/triangular";
import { concat, slice, transpose } from "../shape/shape";
import { tril, triu } from "../shape/triangle";
import { byMatrix, turned } from "./by-matrix";
import { checkMatrices, inFull } from "./check-matrices";
import { partsOf } from "./packed-rows";
import { inverseOfTriangle } from "./triangle";

const MODES = ["reduced", "complete", "r"] as const;

export interface QrOptions {
  /** "reduced", the default: q is [..., m, k] with k = min(m, n). "complete": [..., m, m]. "r": q is empty, [0]. */
  readonly mode?: (typeof MODES)[number];
}

/** What `qr` found: x = q r. */
export interface Qr {
  /** Its columns have length 1, and are orthogonal. */
  readonly q: Tensor;
  /** Upper triangles, of as many rows as q has columns. */
  readonly r: Tensor;
}

/**
 * Orthogonal q and upper triangular r of matrices x = q r, [..., m, n] of f32 or f64, by Householder's reflections with LAPACK's signs. The
 * gradient is that of linearly independent first columns. As in torch.linalg.qr, mode "r" has none, and "complete" only for m <= n.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; UNSUPPORTED on webgpu, and in backward for modes without a gradient
 * @example
 * const { q, r } = qr(tensor([[3, 1], [4, 2]])); // q: [[-0.6, -0.8], [-0.8, 0.6]], r: [[-5, -2.2], [0, 0.4]]
 */
export function qr(x: Tensor, options: QrOptions = {}): Qr {
  const samples = overSamples(qr, x, options);
  if (samples) return samples;
  checkOptions("qr", options, { mode: "string" });
  const { mode = "reduced" } = options;
  checkValue(MODES.includes(mode), "qr", "mode", '"reduced", "complete" or "r"', mode);
  return inFull("qr", [x], (matrix) => tidy(() => factored(matrix!, mode)));
}

function factored(x: Tensor, mode: (typeof MODES)[number]): Qr {
  checkMatrices("qr", x);
  const [m, n] = x.shape.slice(-2) as [number, number];
  const k = mode === "complete" ? m : Math.min(m, n);
  const rows = packedRows(x, m, n, k);
  const packed = record("qr", rows, [x], [rows], backwardOf(mode, m, n));
  const [left, r] = partsOf(packed, [m, n]) as [Tensor, Tensor];
  return { q: mode === "r" ? Tensor.empty([0], x.dtype, x.device) : transpose(left), r };
}

const backwardOf =
  (mode: (typeof MODES)[number], m: number, n: number): Backward =>
  (g, [rows]) => {
    const hasGradient = mode === "reduced" || (mode === "complete" && m <= n);
    check(hasGradient, "UNSUPPORTED", "qr", () => `mode ${mode} has no gradient here.`, 'Use mode "reduced".');
    return [gradient(g, rows!, m, n)];
  };

/** Rows [transpose(q) | r], [k, m + n]. */
function packedRows(x: Tensor, m: number, n: number, k: number): Tensor {
  const [rows] = byMatrix("qr", x, [[k, m + n]], (a, [result], kernels) => {
    const columns = turned(a, m, n);
    const left = orthogonal(columns, m, n, k, kernels);
    for (let i = 0; i < k; i++) {
      const at = i * (m + n);
      result!.set(left.subarray(i * m, i * m + m), at);
      for (let j = i; j < n; j++) result![at + m + j] = columns[j * m + i]!;
    }
  });
  return rows!;
}

/** Of rows [transpose(q) | r] with square or orthonormal q: for m >= n by the symmetric part, for m < n by the skew part (Walter and Lehmann 2018). */
function gradient(g: Tensor, packed: Tensor, m: number, n: number): Tensor {
  const [left, r] = partsOf(packed, [m, n]) as [Tensor, Tensor];
  const [ofLeft, ofR] = partsOf(g, [m, n]) as [Tensor, Tensor];
  const turning = matmul(left, ofLeft, { transposeB: true });
  const stretching = matmul(ofR, r, { transposeB: true });
  if (m >= n) {
    const upper = triu(elementwise("sub", [stretching, turning]));
    const symmetric = elementwise("add", [upper, transpose(triu(upper, 1))]);
    const inner = elementwise("add", [transpose(ofLeft), matmul(left, symmetric, { transposeA: true })]);
    return matmul(inner, inverseOfTriangle(transpose(r)));
  }
  const skew = elementwise("sub", [turning, stretching]);
  const lower = tril(elementwise("sub", [skew, transpose(skew)]), -1);
  const square = matmul(lower, inverseOfTriangle(transpose(slice(r, 0, m, -1))));
  const none = fill([...square.shape.slice(0, -1), n - m], 0, g.dtype, g.device);
  return matmul(left, elementwise("add", [ofR, concat([square, none], -1)]), { transposeA: true });
}
