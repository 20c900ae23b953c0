/** Norms, powers and exponentials of matrices. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { normalizeAxis, showShape } from "../../values/shape";
import { clone } from "../cast";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { fill } from "../map";
import { matmul } from "../matmul";
import { exponential } from "../matrix-algorithms/exponential";
import { maxOver, minOver } from "../reduce/largest";
import { norm } from "../reduce/norm";
import { sum } from "../reduce/reduce";
import { concat, permute, reshape, slice, transpose } from "../shape/shape";
import { byMatrix } from "./by-matrix";
import { checkSquare, inFull } from "./check-matrices";
import { isDiagonal } from "./packed-rows";
import { inverse } from "./solve";
import { svdvals } from "./svd";

const ORDERS = ["fro", "nuc", 1, -1, 2, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as const;

/** Which norm of a matrix. */
export type MatrixOrder = (typeof ORDERS)[number] | number;

/**
 * A norm of matrices over two axes: "fro" is the root of the sum of squares, "nuc" the sum of singular values, 2 and -2 the largest and the
 * smallest of them, 1 and -1 the largest and the smallest sum of |x| of a column, Infinity and -Infinity of a row. Nothing has the norm 0.
 * As torch.linalg.matrix_norm. Singular values: see `svd`.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; of singular values also UNSUPPORTED on webgpu
 * @example
 * matrixNorm(tensor([[3, 0], [0, -4]])); // 5
 */
export function matrixNorm(
  x: Tensor,
  order: MatrixOrder = "fro",
  axes: readonly [number, number] = [-2, -1],
  keepDim = false,
): Tensor {
  const where = "matrixNorm";
  checkTensor(where, x);
  const isOrder = (ORDERS as readonly unknown[]).includes(order);
  checkValue(isOrder, where, "order", '"fro", "nuc", 1, -1, 2, -2, Infinity or -Infinity', order);
  checkValue(Array.isArray(axes) && axes.length === 2, where, "axes", "two axes", axes, "For example [0, 1].");
  check(isFloat(x.dtype), "BAD_DTYPE", where, () => `x must be floats, got ${x.dtype}.`, 'Cast with to("f32").');
  const rank = x.shape.length;
  check(rank >= 2, "BAD_SHAPE", where, () => `x must be matrices, got ${showShape(x.shape)}.`);
  const [row, column] = axes.map((axis) => normalizeAxis(where, axis, rank)) as [number, number];
  checkValue(row !== column, where, "axes", "two axes that differ", axes, "For example [0, 1].");
  if (order === "fro") return norm(x, 2, [row, column], keepDim);
  return tidy(() => {
    if (order === "nuc" || Math.abs(order) === 2) return ofSingularValues(x, order, row, column, keepDim);
    if (x.shape[row] === 0 || x.shape[column] === 0) return sum(x, [row, column], keepDim);
    const [inner, outer] = Math.abs(order) === 1 ? [row, column] : [column, row];
    const sums = sum(elementwise("abs", [x]), inner, true);
    const found = (order < 0 ? minOver : maxOver)(sums, outer, true);
    return reshape(found, keptShape(x, row, column, keepDim));
  });
}

const keptShape = ({ shape }: Tensor, row: number, column: number, keepDim: boolean) =>
  shape.flatMap((extent, axis) => (axis !== row && axis !== column ? [extent] : keepDim ? [1] : []));

function ofSingularValues(x: Tensor, order: MatrixOrder, row: number, column: number, keepDim: boolean): Tensor {
  const others = x.shape.map((_, axis) => axis).filter((axis) => axis !== row && axis !== column);
  const values = svdvals(permute(x, [...others, row, column]));
  const isSum = order === "nuc" || values.shape.at(-1) === 0;
  const found = isSum ? sum(values, -1) : (order === 2 ? maxOver : minOver)(values, -1);
  return reshape(found, keptShape(x, row, column, keepDim));
}

/**
 * Square matrices [..., n, n] times themselves, by repeated squares; of a negative exponent their inverses. As torch.linalg.matrix_power.
 *
 * @throws OptError BAD_SHAPE; BAD_ARGUMENT for an exponent that is not whole, or for a singular matrix
 * @example
 * matrixPower(tensor([[1, 1], [0, 1]]), 5); // [[1, 5], [0, 1]]
 */
export function matrixPower(x: Tensor, exponent: number): Tensor {
  const where = "matrixPower";
  checkTensor(where, x);
  checkValue(Number.isInteger(exponent), where, "exponent", "an integer", exponent, "For example 2.");
  const isSquare = x.shape.length >= 2 && x.shape.at(-1) === x.shape.at(-2);
  check(isSquare, "BAD_SHAPE", where, () => `x must be square matrices [..., n, n], got ${showShape(x.shape)}.`);
  if (exponent === 0) return tidy(() => unitOf(x));
  return tidy(() => {
    let square = exponent < 0 ? inverse(x) : clone(x);
    let result: Tensor | null = null;
    for (let left = Math.abs(exponent); left > 0; left = Math.floor(left / 2)) {
      if (left % 2 === 1) result = result === null ? square : matmul(result, square);
      if (left > 1) square = matmul(square, square);
    }
    return result!;
  });
}

/** The unit matrices, whose gradient is 0. */
function unitOf(x: Tensor): Tensor {
  const diagonal = isDiagonal(x.shape.at(-1)!, x);
  return elementwise("select", [diagonal, 1, elementwise("select", [diagonal, x, 0])]);
}

/**
 * e^x of square matrices [..., n, n] of f32 or f64: 1 + x + x x / 2 + ..., by scaling and squaring. As torch.linalg.matrix_exp.
 *
 * The host computes in float64, so js, wasm and cpu give equal words. Other devices copy to the host and back, with one warning.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; UNSUPPORTED on webgpu
 * @example
 * matrixExp(tensor([[0, 1], [0, 0]])); // [[1, 1], [0, 1]]
 */
export function matrixExp(x: Tensor): Tensor {
  const samples = overSamples(matrixExp, x);
  if (samples) return samples;
  return inFull("matrixExp", [x], (matrix) => {
    checkSquare("matrixExp", matrix);
    return tidy(() => exponentialOf(matrix));
  });
}

function exponentialOf(x: Tensor): Tensor {
  const n = x.shape.at(-1)!;
  const [output] = byMatrix("matrixExp", x, [[n, n]], (a, [result]) => {
    result!.set(exponential(a, n));
  });
  // The exponential of [[A', g], [0, A']] has the gradient in its upper right block (Al-Mohy and Higham 2009).
  return record("matrixExp", output!, [x], [x], (g, [matrix]) => {
    const turned = transpose(matrix!);
    const zero = fill(g.shape, 0, g.dtype, g.device);
    const block = concat([concat([turned, g], -1), concat([zero, turned], -1)], -2);
    return [slice(slice(exponentialOf(block), 0, g.shape.at(-1)!, -2), g.shape.at(-1)!, undefined, -1)];
  });
}
