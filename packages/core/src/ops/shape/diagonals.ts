/** Axes that run together. */

import { overSamples } from "../../tensor/batching";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { denseStrides, type Shape } from "../../values/shape";
import { fill } from "../map";
import { copyBox } from "./copy-box";

/** For each axis of the result the axes of x, of one extent, that it runs along. */
export type Groups = readonly (readonly number[])[];

/** [[0], [1, 2]] of [n, m, m] is the diagonals [n, m]; groups of one axis each are a permutation. A copy. */
export function diagonals(x: Tensor, groups: Groups): Tensor {
  const samples = overSamples(diagonals, x, groups);
  if (samples) return samples;
  const { shape: whole } = x;
  const { shape, strides } = placesOf(whole, groups);
  const output = Tensor.empty(shape, x.dtype, x.device);
  copyBox(x, output, shape, { offset: 0, strides }, { offset: 0, strides: denseStrides(shape) });
  return record("diagonals", output, [x], [], (g) => [embedded(g, whole, groups)]);
}

/** Zeros, and x on the diagonals: the adjoint. */
export function embedded(x: Tensor, whole: Shape, groups: Groups): Tensor {
  const samples = overSamples(embedded, x, whole, groups);
  if (samples) return samples;
  const { shape, strides } = placesOf(whole, groups);
  const output = fill(whole, 0, x.dtype, x.device);
  copyBox(x, output, shape, { offset: 0, strides: denseStrides(shape) }, { offset: 0, strides });
  return record("embedded", output, [x], [], (g) => [diagonals(g, groups)]);
}

function placesOf(whole: Shape, groups: Groups) {
  const own = denseStrides(whole);
  return {
    shape: groups.map(([axis]) => whole[axis!]!),
    strides: groups.map((axes) => axes.reduce((sum, axis) => sum + own[axis]!, 0)),
  };
}

/** The diagonals [..., n] of matrices [..., n, n]. */
export function diagonalOf(x: Tensor): Tensor {
  const last = x.shape.length - 1;
  return diagonals(x, [...x.shape.slice(0, -2).map((_, axis) => [axis]), [last - 1, last]]);
}

/** The matrix [n, n] with a vector [n] on its diagonal, and zeros elsewhere. */
export const diagonalsOf = (x: Tensor): Tensor => embedded(x, [x.size, x.size], [[0, 1]]);
