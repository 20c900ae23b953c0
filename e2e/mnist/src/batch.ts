import { type Tensor, tensor } from "@opt/core";
import { type Digits, PIXELS } from "./data";

export interface Batch {
  /** [count, 784], in [0, 1] */
  readonly images: Tensor;
  readonly labels: Uint8Array;
}

/** The digits at the given positions. The device is given bytes: a quarter of the transfer, and it divides faster. */
export function batchOf(digits: Digits, positions: Int32Array): Batch {
  const pixels = new Uint8Array(positions.length * PIXELS);
  const labels = new Uint8Array(positions.length);
  for (let row = 0; row < positions.length; row++) {
    const position = positions[row]!;
    pixels.set(digits.pixels.subarray(position * PIXELS, (position + 1) * PIXELS), row * PIXELS);
    labels[row] = digits.labels[position]!;
  }
  return { images: tensor(pixels, { shape: [positions.length, PIXELS] }).div(255), labels };
}

/** Positions `start` to `end`, in file order. */
export function range(start: number, end: number): Int32Array {
  return Int32Array.from({ length: end - start }, (_, i) => start + i);
}
