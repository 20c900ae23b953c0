/** What a loader reads: samples by position. */
import { check, show } from "@opt/core";

/** Samples 0 ... length - 1. A sample may come later: read from a file, decoded, fetched. */
export interface Dataset<Sample> {
  readonly length: number;
  get(index: number): Sample | Promise<Sample>;
}

/** A dataset that makes whole batches faster than sample by sample. */
export interface BatchedDataset<Sample, Batch> extends Dataset<Sample> {
  batch(indices: Int32Array): Batch | Promise<Batch>;
}

/** @throws OptError BAD_ARGUMENT */
export function checkDataset(where: string, dataset: unknown): asserts dataset is Dataset<unknown> {
  const { length, get } = (dataset ?? {}) as Partial<Dataset<unknown>>;
  const isDataset = typeof get === "function" || Array.isArray(dataset);
  const problem = () => `the dataset must have a length and get(index), got ${show(dataset)}.`;
  check(isDataset, "BAD_ARGUMENT", where, problem, "For example new TensorDataset(x, y), or an array of samples.");
  const isCount = Number.isInteger(length) && length! >= 0 && length! < 2 ** 31;
  check(
    isCount,
    "BAD_ARGUMENT",
    where,
    () => `length must be an integer from 0, got ${show(length)}.`,
    "Count the samples.",
  );
}

/** @throws OptError BAD_ARGUMENT */
export function checkIndex(where: string, index: number, length: number): void {
  const isIndex = Number.isInteger(index) && index >= 0 && index < length;
  const problem = () => `an index must be from 0 to ${length - 1}, got ${show(index)}.`;
  check(isIndex, "BAD_ARGUMENT", where, problem, "Count samples from 0.");
}
