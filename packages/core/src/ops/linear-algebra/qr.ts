/** Orthogonal and triangular factors of matrices. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { type Backward, noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { cast } from "../cast";
import { elementwise } from "../elementwise/elementwise";
import { fill } from "../map";
import { matmul } from "../matmul";
import { compactForm, orthogonal, reflections } from "../matrix-algorithms/triangular";
import { expand } from "../shape/extents";
import { concat, slice, transpose } from "../shape/shape";
import { tril, triu } from "../shape/triangle";
import { byMatrix } from "./by-matrix";
import { checkMatrices, inFull } from "./check-matrices";
import { isDiagonal, partsOf } from "./packed-rows";
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
 * The host computes in float64, wide f32 matrices in panels with products of the device between: js and cpu give equal words, and so does
 * wasm where `device.portable` is true. Other devices copy to the host and back, with one warning.
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
  const isWide = x.dtype === "f32" && Math.min(m, n) > PANEL;
  const rows = noGrad(() => tidy(() => (isWide ? inPanels(x, m, n, k) : atOnce(x, m, n, k))));
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
function atOnce(x: Tensor, m: number, n: number, k: number): Tensor {
  const [rows] = byMatrix("qr", x, [[k, m + n]], (a, [result]) => {
    const left = orthogonal(a, m, n, k);
    for (let i = 0; i < k; i++) {
      result!.set(left.subarray(i * m, i * m + m), i * (m + n));
      result!.set(a.subarray(i * n, i * n + n), i * (m + n) + m);
    }
  });
  return rows!;
}

/** Columns that the host reflects before the device applies them to all others. */
const PANEL = 32;

/** The same of large matrices, by blocks of reflections 1 - V T transpose(V). */
function inPanels(x: Tensor, m: number, n: number, k: number): Tensor {
  const panels: { start: number; v: Tensor; t: Tensor }[] = [];
  const rowsOfR: Tensor[] = [];
  let rest = x;
  for (let start = 0; start < Math.min(m, n); start += PANEL) {
    const height = m - start;
    const width = Math.min(PANEL, n - start, height);
    const [v, t, r] = byMatrix(
      "qr",
      slice(rest, 0, width, -1),
      [
        [height, width],
        [width, width],
        [width, width],
      ],
      (a, [ofV, ofT, ofR]) => {
        const form = compactForm(reflections(a, height, width), height);
        ofV!.set(form.v);
        ofT!.set(form.t);
        ofR!.set(a.subarray(0, width * width));
      },
    ) as [Tensor, Tensor, Tensor];
    panels.push({ start, v, t });
    const others = slice(rest, width, undefined, -1);
    const reflected = less(others, v, matmul(t, matmul(v, others, { transposeA: true }), { transposeA: true }));
    const zeros = fill([...x.shape.slice(0, -2), width, start], 0, x.dtype, x.device);
    rowsOfR.push(concat([zeros, r, slice(reflected, 0, width, -2)], -1));
    rest = slice(reflected, width, undefined, -2);
  }
  const missing = k - rowsOfR.reduce((sum, rows) => sum + rows.shape.at(-2)!, 0);
  const zeros = fill([...x.shape.slice(0, -2), missing, n], 0, x.dtype, x.device);
  let q = expand(cast(isDiagonalOf(m, k, x), x.dtype), [...x.shape.slice(0, -2), m, k]);
  for (const { start, v, t } of panels.reverse()) {
    const below = slice(q, start, undefined, -2);
    const changed = less(below, v, matmul(t, matmul(v, below, { transposeA: true })));
    q = concat([slice(q, 0, start, -2), changed], -2);
  }
  return concat([transpose(q), concat([...rowsOfR, zeros], -2)], -1);
}

const less = (x: Tensor, a: Tensor, b: Tensor) => elementwise("sub", [x, matmul(a, b)]);

const isDiagonalOf = (m: number, k: number, x: Tensor) => slice(isDiagonal(Math.max(m, k), x), 0, k, 1);

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
