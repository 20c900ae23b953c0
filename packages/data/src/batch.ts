/** Some samples of a dataset as a batch: made by the dataset where it can, else sample by sample. */
import { collate } from "./collate";
import type { BatchedDataset, Dataset } from "./dataset";

type Join<Sample, Batch> = (samples: Sample[]) => Batch | Promise<Batch>;

export function batchOf<Sample, Batch>(
  dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
  indices: Int32Array,
  own?: Join<Sample, Batch>,
): Batch | Promise<Batch> {
  if (own === undefined && "batch" in dataset) return dataset.batch(indices);
  const join = own ?? (collate as unknown as Join<Sample, Batch>);
  const get = (i: number) => ("get" in dataset ? dataset.get(i) : dataset[i]!);
  const samples = Array.from(indices, get);
  if (!samples.some(isLater)) return join(samples as Sample[]);
  const made = Promise.all(samples).then(join);
  made.catch(() => {}); // its loop is told, when its turn comes
  return made;
}

export function isLater<T>(made: T | Promise<T>): made is Promise<T> {
  return typeof (made as { then?: unknown } | null)?.then === "function";
}
