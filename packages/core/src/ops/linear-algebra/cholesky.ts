/** Cholesky's factors of positive definite matrices, and systems solved by them. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { div, sqrt } from "../../rule/symbols";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { denseStrides, showShape } from "../../values/shape";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "../elementwise/elementwise";
import { extended } from "../elementwise/elementwise-table";
import { eq } from "../elementwise/logic";
import { positions } from "../indices/positions";
import { lookAtResult } from "../look-at";
import { fill } from "../map";
import { matmul } from "../matmul";
import { copyBox } from "../shape/copy-box";
import { diagonalOf } from "../shape/diagonals";
import { reshape, slice, transpose } from "../shape/shape";
import { tril } from "../shape/triangle";
import { checkFloats, checkSquare, inFull } from "./check-matrices";
import { lessProduct } from "./less-product";
import { inverseOfTriangle } from "./triangle";

/** Which triangle the factor is. */
export interface TriangleOptions {
  /** The upper triangle U of x = transpose(U) U. Default false: the lower one of x = L transpose(L). */
  readonly upper?: boolean;
}

/**
 * The lower triangle L, with a positive diagonal, of x = L transpose(L), for symmetric positive definite matrices [..., n, n] of f32 or
 * f64. Only the lower triangle of x is read. In n rounds on the device. A matrix that is not positive definite throws where the
 * device shares the host's memory; elsewhere its factor has NaN on the diagonal.
 *
 * @throws OptError BAD_ARGUMENT for a matrix that is not positive definite; BAD_SHAPE, BAD_DTYPE
 * @example
 * cholesky(tensor([[4, 2], [2, 10]])); // [[2, 0], [1, 3]]
 */
export function cholesky(x: Tensor, options: TriangleOptions = {}): Tensor {
  const samples = overSamples(cholesky, x, options);
  if (samples) return samples;
  checkOptions("cholesky", options, { upper: "boolean" });
  return inFull("cholesky", [x], (matrix) => {
    checkSquare("cholesky", matrix);
    return tidy(() => (options.upper ? transpose(factorOf(transpose(matrix))) : factorOf(matrix)));
  });
}

function factorOf(x: Tensor): Tensor {
  const output = noGrad(() => tidy(() => factored(x)));
  lookAtResult(
    noGrad(() => diagonalOf(output)),
    (values) => checkPositive(values, x.shape.at(-1)!),
  );
  return record("cholesky", output, [x], [output], (g, [lower]) => [factorGradient(g, lower!)]);
}

function checkPositive(diagonal: ArrayLike<number>, extent: number): void {
  const failed = Array.prototype.findIndex.call(diagonal, (value: number) => Number.isNaN(value));
  const order = (failed % extent) + 1;
  check(
    failed < 0,
    "BAD_ARGUMENT",
    "cholesky",
    () => `the matrix must be positive definite, its leading minor of order ${order} is not.`,
    "Add a small number to its diagonal.",
  );
}

const COLUMN: ElementwiseDefinition = {
  forward: (x, pivot) => div(x!, sqrt(pivot!)),
  gradients: [null, null],
  result: "integer",
};

/** Column by column, each of which is taken off what is right of it and below. */
function factored(x: Tensor): Tensor {
  const extent = x.shape.at(-1)!;
  const lower = fill(x.shape, 0, x.dtype, x.device);
  const { length: rank } = x.shape;
  const strides = denseStrides(x.shape);
  let rest = x;
  for (let j = 0; j < extent; j++) {
    const before = rest;
    rest = tidy(() => {
      const column = slice(before, 0, 1, -1);
      const scaled = elementwise(extended("choleskyColumn", COLUMN), [column, slice(column, 0, 1, -2)]);
      const { shape } = scaled;
      copyBox(scaled, lower, shape, { offset: 0, strides: denseStrides(shape) }, { offset: j * (extent + 1), strides });
      const tail = slice(scaled, 1, undefined, -2);
      const row = reshape(tail, [...shape.slice(0, rank - 2), 1, tail.shape.at(-2)!]);
      return lessProduct(slice(slice(before, 1, undefined, -2), 1, undefined, -1), tail, row);
    });
    if (before !== x) before.dispose();
  }
  return lower;
}

/** transpose(X) S X with X the inverse of L and S the symmetric part of the lower half of transpose(L) g (Murray 2016). */
function factorGradient(g: Tensor, lower: Tensor): Tensor {
  const extent = lower.shape.at(-1)!;
  const inverse = inverseOfTriangle(lower);
  const isDiagonal = eq(positions([extent, 1], g.device), positions([extent], g.device));
  const product = tril(matmul(lower, g, { transposeA: true }));
  const half = elementwise("select", [isDiagonal, elementwise("mul", [product, 0.5]), product]);
  const symmetric = elementwise("mul", [elementwise("add", [half, transpose(half)]), 0.5]);
  return matmul(matmul(inverse, symmetric, { transposeA: true }), inverse);
}

/**
 * The x of A x = b, from the Cholesky factor of A: b is [..., n, k], batches broadcast. Of the factor only its triangle is read.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const A = tensor([[4, 2], [2, 10]]);
 * choleskySolve(tensor([[8], [22]]), cholesky(A)); // [[1], [2]]
 */
export function choleskySolve(b: Tensor, factor: Tensor, options: TriangleOptions = {}): Tensor {
  const samples = overSamples(choleskySolve, b, factor, options);
  if (samples) return samples;
  checkOptions("choleskySolve", options, { upper: "boolean" });
  return inFull("choleskySolve", [b, factor], (sides, triangle) => solvedBy(sides!, triangle!, options.upper ?? false));
}

function solvedBy(b: Tensor, factor: Tensor, upper: boolean): Tensor {
  const where = "choleskySolve";
  checkFloats(where, b, "b");
  checkSquare(where, factor, "the factor");
  const isFit = b.shape.length >= 2 && b.shape.at(-2) === factor.shape.at(-1);
  check(
    isFit,
    "BAD_SHAPE",
    where,
    () => `b must be [..., n, k] for factors [..., n, n], got ${showShape(b.shape)} and ${showShape(factor.shape)}.`,
    "A vector is unsqueeze(b, -1).",
  );
  return tidy(() => {
    const inverse = inverseOfTriangle(upper ? transpose(factor) : factor);
    return matmul(inverse, matmul(inverse, b), { transposeA: true });
  });
}
