/** Heads of a width side by side, and apart. */
import type { Tensor } from "@opt/core";

/** [rows, places, heads * headDim] as [rows, heads, places, headDim]. */
export function splitHeads(x: Tensor, heads: number): Tensor {
  const [rows, places, width] = x.shape as [number, number, number];
  return x.reshape([rows, places, heads, width / heads]).transpose(1, 2);
}
