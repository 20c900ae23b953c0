/** Rows of a table replaced by index. */

import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { cast, clone } from "../cast";
import { computeOn } from "../compute";
import { elementwise } from "../elementwise/elementwise";
import { le } from "../elementwise/logic";
import { fill } from "../map";
import { reshape, slice } from "../shape/shape";
import { gather, scatterRows } from "./gather";
import { positions } from "./positions";

/**
 * table [rows, ...] with values [n, ...] in the rows (i32 [n]); of equal ones the last counts. Negative rows are left out. Each value gets
 * the gradient of its row, as in PyTorch: also where a later one was put there.
 */
export function putRows(table: Tensor, rows: Tensor, values: Tensor): Tensor {
  if (table.size === 0 || values.size === 0) return untouched(table, values);
  const [count, ...rest] = table.shape as [number, ...number[]];
  const { isPut, from } = noGrad(() => sources(rows, count));
  const isReplaced = reshape(isPut, [count, ...rest.map(() => 1)]);
  const result = noGrad(() => elementwise("select", [isReplaced, gather(values, from), table]));
  return record("putRows", result, [table, values], [isReplaced, rows], (g, [isReplaced, rows], needs) => [
    needs[0] ? elementwise("select", [isReplaced!, 0, g]) : null,
    needs[1] ? gather(g, rows!) : null,
  ]);
}

/** A copy of the table, in which no value is. */
export function untouched(table: Tensor, values: Tensor): Tensor {
  const { shape, dtype, device } = values;
  return record(
    "putRows",
    noGrad(() => clone(table)),
    [table, values],
    [],
    (g) => [g, fill(shape, 0, dtype, device)],
  );
}

/** For each of `count` rows whether something is put there, and which value: of equal rows (i32 [n]) the last. */
export function sources(rows: Tensor, count: number): { isPut: Tensor; from: Tensor } {
  const { device, size } = rows;
  const numbers = cast(positions([size], device), computeOn(device, "i32")); // which holds every i32
  const found = scatterRows(elementwise("add", [numbers, 1]), lastOfEach(rows, count), [count + 1]);
  const from = elementwise("sub", [slice(cast(found, "i32"), 0, count), 1]);
  return { isPut: le(0, from), from: elementwise("maximum", [from, 0]) };
}

/** The places, and `count` for each that comes again later: bit by bit, those stay whose number has the highest bits of its rivals'. */
function lastOfEach(places: Tensor, count: number): Tensor {
  const { device, size } = places;
  const numbers = positions([size], device);
  let left = places;
  for (let bit = 2 ** 30; bit >= 1; bit /= 2) {
    if (bit >= size) continue;
    // The sign of the number shifted to the left.
    const isSet = elementwise("less", [elementwise("mul", [numbers, 2 ** 31 / bit]), 0]);
    const found = scatterRows(cast(isSet, "f32"), left, [count + 1]);
    const beaten = elementwise("less", [cast(isSet, "f32"), elementwise("minimum", [gather(found, left), 1])]);
    left = elementwise("select", [beaten, count, left]);
  }
  return left;
}
