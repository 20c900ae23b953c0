/** Determinants. */

import { tidy } from "../../device/scope";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { cast, clone } from "../cast";
import { elementwise } from "../elementwise/elementwise";
import { sign } from "../elementwise/round";
import { prod } from "../reduce/prod";
import { sum } from "../reduce/reduce";
import { diagonalOf } from "../shape/diagonals";
import { reshape, transpose } from "../shape/shape";
import { checkSquare, inFull } from "./check-matrices";
import { eliminated } from "./elimination";
import { inverse } from "./solve";

/** What `slogdet` found, of shape [...] each. */
export interface Slogdet {
  /** -1, 0 or 1, without a gradient. */
  readonly sign: Tensor;
  /** log |det x|; -Infinity where it is 0. */
  readonly logabsdet: Tensor;
}

/**
 * Sign and logarithm of the determinants of matrices [..., n, n] of f32 or f64, in n rounds on the device. The gradient needs the inverse.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; backward: BAD_ARGUMENT for a singular matrix
 * @example
 * const { sign, logabsdet } = slogdet(tensor([[0, 2], [3, 0]])); // -1 and log(6)
 */
export function slogdet(x: Tensor): Slogdet {
  const samples = overSamples(slogdet, x);
  if (samples) return samples;
  return inFull("slogdet", [x], (matrix) => signAndLogarithm(matrix!));
}

function signAndLogarithm(x: Tensor): Slogdet {
  checkSquare("slogdet", x);
  return tidy(() => {
    const { diagonal, sign: parity } = noGrad(() => pivots(x));
    const signs = noGrad(() => elementwise("mul", [prod(sign(diagonal), -1), parity]));
    const logs = noGrad(() => sum(elementwise("log", [elementwise("abs", [diagonal])]), -1));
    return { sign: signs, logabsdet: record("slogdet", logs, [x], [x], (g, [matrix]) => [scaledInverse(g, matrix!)]) };
  });
}

/**
 * The determinants of matrices [..., n, n] of f32 or f64, in n rounds on the device. The gradient needs the inverse.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; backward: BAD_ARGUMENT for a singular matrix
 * @example
 * det(tensor([[0, 2], [3, 0]])); // -6
 */
export function det(x: Tensor): Tensor {
  const samples = overSamples(det, x);
  if (samples) return samples;
  return inFull("det", [x], (matrix) => determinant(matrix!));
}

function determinant(x: Tensor): Tensor {
  checkSquare("det", x);
  if (x.shape.at(-1) === 1) return clone(reshape(x, x.shape.slice(0, -2))); // whose gradient does not depend on x
  const output = noGrad(() =>
    tidy(() => {
      const { diagonal, sign: parity } = pivots(x);
      return elementwise("mul", [prod(diagonal, -1), parity]);
    }),
  );
  return record("det", output, [x], [x, output], (g, [matrix, y]) => [
    scaledInverse(elementwise("mul", [g, y!]), matrix!),
  ]);
}

/**
 * log(det(x)), NaN where the determinant is negative: of matrices [..., n, n] of f32 or f64.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, BAD_ARGUMENT; backward: BAD_ARGUMENT for a singular matrix
 * @example
 * logdet(tensor([[2, 0], [0, 3]])); // log(6)
 */
export function logdet(x: Tensor): Tensor {
  const samples = overSamples(logdet, x);
  if (samples) return samples;
  return inFull("logdet", [x], (matrix) => logarithm(matrix!));
}

function logarithm(x: Tensor): Tensor {
  checkSquare("logdet", x);
  return tidy(() => {
    const { sign: signs, logabsdet } = slogdet(x);
    return elementwise("select", [elementwise("less", [signs, 0]), Number.NaN, logabsdet]);
  });
}

/** The diagonal of the eliminated matrix, and -1 where an odd number of rows were swapped, else 1. */
function pivots(x: Tensor): { diagonal: Tensor; sign: Tensor } {
  const { rows, swaps } = eliminated(x, x.shape.at(-1)!);
  const diagonal = diagonalOf(rows);
  const signs = elementwise("select", [elementwise("less", [0, reshape(swaps, diagonal.shape)]), -1, 1]);
  return { diagonal, sign: cast(prod(signs, -1), x.dtype) };
}

/** g times the transposed inverse. */
function scaledInverse(g: Tensor, x: Tensor): Tensor {
  return elementwise("mul", [reshape(g, [...g.shape, 1, 1]), transpose(inverse(x))]);
}
