/** Heads of a width: put apart, and turned by their positions. */
import { concat, type Tensor } from "@opt/core";

/** [rows, places, heads * headDim] as [rows, heads, places, headDim]. */
export function splitHeads(x: Tensor, heads: number): Tensor {
  const [rows, places, width] = x.shape as [number, number, number];
  return x.reshape([rows, places, heads, width / heads]).transpose(1, 2);
}

/** Cosines and sines [..., places, width / 2] of angles, for all heads. */
export type Rotation = readonly [cos: Tensor, sin: Tensor];

/** x [rows, heads, places, width]: its first and second half as coordinates, as Llama's files mean them. */
export function rotate(x: Tensor, [c, s]: Rotation): Tensor {
  const half = x.shape.at(-1)! / 2;
  const [a, b] = [x.slice(0, half, -1), x.slice(half, 2 * half, -1)];
  const [cosines, sines] = [c.to(x.dtype), s.to(x.dtype)];
  return concat([a.mul(cosines).sub(b.mul(sines)), b.mul(cosines).add(a.mul(sines))], -1);
}
