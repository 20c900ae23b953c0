/** Stretches of an array, one after the other: how batches are cut out of the memory of the host. */
import type { TypedArray } from "@opt/core";

export function rowsOf(data: TypedArray, starts: ArrayLike<number>, size: number): TypedArray {
  const rows = new (data.constructor as new (length: number) => TypedArray)(starts.length * size);
  for (let i = 0; i < starts.length; i++) rows.set(data.subarray(starts[i]!, starts[i]! + size), i * size);
  return rows;
}
