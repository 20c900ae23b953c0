/** Some samples of a dataset as a batch: made by the dataset where it can, else sample by sample. */
import { collate } from "./collate";
import { type BatchedDataset, type Dataset, sampleOf } from "./dataset";

type Join<Sample, Batch> = (samples: Sample[]) => Batch | Promise<Batch>;

export function batchOf<Sample, Batch>(
  dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
  indices: Int32Array,
  own?: Join<Sample, Batch>,
): Batch | Promise<Batch> {
  if (own === undefined && "batch" in dataset) return dataset.batch(indices);
  const join = own ?? (collate as unknown as Join<Sample, Batch>);
  const samples: (Sample | Promise<Sample>)[] = [];
  try {
    for (const index of indices) samples.push(sampleOf(dataset, index));
  } catch (error) {
    for (const sample of samples) if (isLater(sample)) unheard(sample);
    throw error;
  }
  return samples.some(isLater) ? Promise.all(samples).then(join) : join(samples as Sample[]);
}

/** Nobody waits for it yet, or ever: that it fails ends no program. */
export function unheard<T>(made: Promise<T>): Promise<T> {
  const promise = Promise.resolve(made);
  promise.catch(() => {});
  return promise;
}

export function isLater<T>(made: T | Promise<T>): made is Promise<T> {
  return typeof (made as { then?: unknown } | null)?.then === "function";
}
