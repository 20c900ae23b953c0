/** One position of an axis, without the axis. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import type { Tensor } from "../../tensor/tensor";
import { normalizeAxis, showShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { reshape, slice } from "./shape";

/**
 * The part of x at one position of an axis, without that axis, as a copy. Negative positions count from the end.
 *
 * @throws OptError BAD_ARGUMENT for an axis or a position that is not there
 * @example
 * select(tensor([[1, 2], [3, 4]]), 0, -1); // [3, 4]
 */
export function select(x: Tensor, axis: number, index: number): Tensor {
  return selected("select", x, axis, index);
}

/**
 * The part at one position of each of the first axes, as a copy; null keeps an axis. Negative positions count from the end.
 *
 * @throws OptError BAD_ARGUMENT for positions that are not there, or more positions than axes
 * @example
 * at(tensor([[1, 2], [3, 4]]), null, 1); // [2, 4]
 */
export function at(x: Tensor, ...indices: readonly (number | null)[]): Tensor {
  checkTensor("at", x);
  const { length } = x.shape;
  check(
    indices.length <= length,
    "BAD_ARGUMENT",
    "at",
    () => `takes a position for each of ${length} axes at most, got ${show(indices)}.`,
    `x is ${showShape(x.shape)}.`,
  );
  // From the last axis on, so that the axes before it keep their numbers.
  const part = (from: Tensor) =>
    indices.reduceRight<Tensor>(
      (rest, index, axis) => (index === null ? rest : selected("at", rest, axis, index)),
      from,
    );
  return tidy(() => part(reshape(x, x.shape)));
}

function selected(where: string, x: Tensor, axis: number, index: number): Tensor {
  checkTensor(where, x);
  const along = normalizeAxis(where, axis, x.shape.length);
  const extent = x.shape[along]!;
  const isThere = Number.isInteger(index) && index >= -extent && index < extent;
  checkValue(
    isThere,
    where,
    "index",
    `an integer from ${-extent} to ${extent - 1}`,
    index,
    `x is ${showShape(x.shape)}.`,
  );
  const from = index < 0 ? index + extent : index;
  return tidy(() => reshape(slice(x, from, from + 1, along), x.shape.toSpliced(along, 1)));
}
