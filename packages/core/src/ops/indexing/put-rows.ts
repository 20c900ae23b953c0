/** Rows of a table replaced by index. */

import { check } from "../../errors/errors";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import { cast, clone } from "../cast";
import { elementwise } from "../elementwise/elementwise";
import { gather, scatterRows } from "../indices/gather";
import { floats } from "../indices/positions";
import { lastOfEach } from "../indices/scatter";
import { fill } from "../map";
import { reshape, slice } from "../shape/shape";

/**
 * table [rows, ...] with values [n, ...] in the rows (i32 [n]); of equal ones the last counts. Negative rows are left out. Each value gets
 * the gradient of its row, as in PyTorch: also where a later one was put there.
 */
export function putRows(where: string, table: Tensor, rows: Tensor, values: Tensor): Tensor {
  if (table.size === 0 || values.size === 0) return untouched(table, values);
  const [count, ...rest] = table.shape as [number, ...number[]];
  const { isPut, from } = noGrad(() => sources(where, rows, count));
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

/** For each row whether something is put there, and which value. */
function sources(where: string, rows: Tensor, count: number): { isPut: Tensor; from: Tensor } {
  const { device, size } = rows;
  const dtype: ComputeDType = device.backend.dtypes.includes("f64") ? "f64" : "f32";
  check(
    dtype === "f64" || size < 2 ** 24,
    "UNSUPPORTED",
    where,
    () => `${device.name} puts fewer than 2^24 rows at once, got ${size}.`,
    "Put some at a time.",
  );
  const numbers = floats([size], dtype, device, (i) => i + 1);
  const found = slice(scatterRows(numbers, lastOfEach(rows, count), [count + 1]), 0, count);
  const from = elementwise("maximum", [elementwise("sub", [found, 1]), 0]);
  return { isPut: elementwise("less", [0, found]), from: cast(from, "i32") };
}
