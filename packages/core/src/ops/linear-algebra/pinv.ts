/** Pseudoinverses, and least squares by them. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { sameShape, showShape } from "../../values/shape";
import { cast } from "../cast";
import { checkDevice } from "../check-device";
import { elementwise } from "../elementwise/elementwise";
import { matmul } from "../matmul";
import { sum } from "../reduce/reduce";
import { squeeze, unsqueeze } from "../shape/extents";
import { slice, transpose } from "../shape/shape";
import { byMatrix } from "./by-matrix";
import { checkFloats, checkMatrices, inFull } from "./check-matrices";
import { singularOf } from "./svd";

export interface PinvOptions {
  /** Singular values up to this share of the largest count as 0. Default: max(m, n) times the dtype's epsilon, or 0 where `atol` is given. */
  readonly rtol?: number;
  /** Singular values up to this count as 0. Default 0. */
  readonly atol?: number;
}

/**
 * The Moore-Penrose pseudoinverses [..., n, m] of matrices [..., m, n] of f32 or f64: V diag(1 / s) transpose(U), without singular values that
 * count as 0. As torch.linalg.pinv.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE; BAD_ARGUMENT for NaN, infinity or negative tolerances; UNSUPPORTED on webgpu
 * @example
 * pinv(tensor([[2, 0], [0, 0]])); // [[0.5, 0], [0, 0]]
 */
export function pinv(x: Tensor, options: PinvOptions = {}): Tensor {
  const samples = overSamples(pinv, x, options);
  if (samples) return samples;
  checkOptions("pinv", options, { rtol: "number", atol: "number" });
  for (const [name, value] of Object.entries(options))
    checkValue(value === undefined || value >= 0, "pinv", name, "at least 0", value);
  return inFull("pinv", [x], (matrix) => {
    checkMatrices("pinv", matrix);
    const { atol = 0, rtol = options.atol ? 0 : roundingOf(matrix) } = options;
    return tidy(() => pseudoinverse("pinv", matrix, rtol, atol).inverse);
  });
}

const roundingOf = ({ dtype, shape }: Tensor) => Math.max(...shape.slice(-2)) * 2 ** (dtype === "f64" ? -52 : -23);

function pseudoinverse(where: string, x: Tensor, rtol: number, atol: number): { inverse: Tensor; values: Tensor } {
  const [m, n] = x.shape.slice(-2) as [number, number];
  const [output, values] = byMatrix(where, x, [[n, m], [Math.min(m, n)]], (a, [result, all], kernels) => {
    const { values, left, right } = singularOf(where, a, m, n, "reduced", kernels);
    all!.set(values);
    const least = Math.max(atol, rtol * (values[0] ?? 0));
    for (let k = 0; k < values.length && values[k]! > least; k++) {
      for (let i = 0; i < n; i++) {
        const factor = right[k * n + i]! / values[k]!;
        for (let j = 0; j < m; j++) result![i * m + j] = result![i * m + j]! + factor * left[k * m + j]!;
      }
    }
  });
  const inverse = record("pinv", output!, [x], [x, output!], (g, [matrix, p]) => [gradient(g, matrix!, p!)]);
  return { inverse, values: values! };
}

/** Of a constant rank (Golub and Pereyra 1973): -P' g P' and what leaves the ranges of A and of P. */
function gradient(g: Tensor, a: Tensor, p: Tensor): Tensor {
  const turn = (x: Tensor) => transpose(x);
  const k = matmul(p, turn(g)); // [n, n]
  const less = (x: Tensor, y: Tensor) => elementwise("sub", [x, y]);
  const inside = turn(matmul(k, p));
  const ofRows = matmul(matmul(less(turn(g), matmul(a, k)), p), turn(p));
  const right = matmul(turn(p), k);
  const ofColumns = less(right, matmul(matmul(right, p), a));
  return less(elementwise("add", [ofRows, ofColumns]), inside);
}

export interface LstsqOptions {
  /** Singular values up to this share of the largest count as 0. Default: max(m, n) times the dtype's epsilon. */
  readonly rcond?: number;
}

/** What `lstsq` found. */
export interface LeastSquares {
  /** The shortest x that makes |a x - b| least. */
  readonly solution: Tensor;
  /** The sums of squares [..., k] of a x - b. */
  readonly residuals: Tensor;
  /** i32 [...]: how many singular values of a count. Without a gradient. */
  readonly rank: Tensor;
  /** Of a, [..., min(m, n)]. Without a gradient. */
  readonly singularValues: Tensor;
}

/**
 * The x of least |a x - b|, for matrices a [..., m, n] and b [..., m, k] or vectors [..., m] of f32 or f64; batches broadcast. Of several
 * the shortest, also where columns of a depend on each other. As torch.linalg.lstsq with driver "gelsd", with residuals of any rank.
 *
 * The host computes in float64, see `pinv`; the product with b is the device's.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for NaN, infinity or a negative rcond; UNSUPPORTED on webgpu
 * @example
 * const { solution } = lstsq(tensor([[1, 0], [1, 1], [1, 2]]), tensor([1, 3, 5])); // [1, 2]
 */
export function lstsq(a: Tensor, b: Tensor, options: LstsqOptions = {}): LeastSquares {
  const samples = overSamples(lstsq, a, b, options);
  if (samples) return samples;
  const where = "lstsq";
  checkOptions(where, options, { rcond: "number" });
  const { rcond } = options;
  checkValue(rcond === undefined || rcond >= 0, where, "rcond", "at least 0", rcond);
  return inFull(where, [a, b], (left, right) => {
    checkMatrices(where, left, "a");
    checkFloats(where, right, "b");
    checkDevice(where, [left, right]);
    const isVector = right.shape.length === 1 || sameShape(right.shape, left.shape.slice(0, -1));
    const rows = right.shape.at(isVector ? -1 : -2);
    check(
      rows === left.shape.at(-2),
      "BAD_SHAPE",
      where,
      () => `b must have as many rows as a, got ${showShape(right.shape)} for ${showShape(left.shape)}.`,
      "b is [..., m, k], or vectors [..., m].",
    );
    return tidy(() => leastSquares(left, isVector ? unsqueeze(right, -1) : right, isVector, rcond ?? roundingOf(left)));
  });
}

function leastSquares(a: Tensor, b: Tensor, isVector: boolean, rcond: number): LeastSquares {
  const { inverse, values: singularValues } = pseudoinverse("lstsq", a, rcond, 0);
  const x = matmul(inverse, b);
  const difference = elementwise("sub", [matmul(a, x), b]);
  const residuals = sum(elementwise("mul", [difference, difference]), -2);
  const rank = noGrad(() => {
    const least = elementwise("mul", [slice(singularValues, 0, 1, -1), rcond]);
    return sum(cast(elementwise("less", [least, singularValues]), "i32"), -1);
  });
  return { solution: isVector ? squeeze(x, -1) : x, residuals, rank, singularValues };
}
