import { type Tensor, tensor } from "@opt/core";
import { type Digits, PIXELS } from "./data";

export interface Batch {
  /** [count, 784], in [0, 1] */
  readonly images: Tensor;
  readonly labels: Uint8Array;
}

/** The digits at the given positions. */
export function batchOf(digits: Digits, positions: Int32Array): Batch {
  const pixels = new Float32Array(positions.length * PIXELS);
  const labels = new Uint8Array(positions.length);
  for (let row = 0; row < positions.length; row++) {
    const from = positions[row]! * PIXELS;
    const to = row * PIXELS;
    for (let i = 0; i < PIXELS; i++) pixels[to + i] = digits.pixels[from + i]! / 255;
    labels[row] = digits.labels[positions[row]!]!;
  }
  return { images: tensor(pixels, { shape: [positions.length, PIXELS] }), labels };
}

/** Positions `start` to `end`, in file order. */
export function range(start: number, end: number): Int32Array {
  return Int32Array.from({ length: end - start }, (_, i) => start + i);
}
