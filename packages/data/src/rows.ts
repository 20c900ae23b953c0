/** Stretches of an array, one after the other: how batches are cut out of the memory of the host. */
import type { TypedArray } from "@opt/core";

/** The class of an array; of Node's Buffer, which is not made by `new`, that of its bytes. */
export function kindOf(array: TypedArray): new (length: number) => TypedArray {
  return array instanceof Uint8Array ? Uint8Array : (array.constructor as new (length: number) => TypedArray);
}

export function rowsOf(data: TypedArray, starts: ArrayLike<number>, size: number): TypedArray {
  const rows = new (kindOf(data))(starts.length * size);
  for (let i = 0; i < starts.length; i++) rows.set(data.subarray(starts[i]!, starts[i]! + size), i * size);
  return rows;
}
