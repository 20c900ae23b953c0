/** What a loader reads: samples by position. */
import { check, show } from "@opt/core";

/** Samples 0 ... length - 1. A sample may come later: read from a file, decoded, fetched. */
export interface Dataset<Sample> {
  readonly length: number;
  get(index: number): Sample | Promise<Sample>;
}

/** A dataset that makes whole batches faster than sample by sample. A loader frees their tensors. */
export interface BatchedDataset<Sample, Batch> extends Dataset<Sample> {
  batch(indices: Int32Array): Batch | Promise<Batch>;
}

export function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0;
}

/** Sample `index` of a dataset or of an array of samples. */
export function sampleOf<Sample>(
  dataset: Dataset<Sample> | readonly Sample[],
  index: number,
): Sample | Promise<Sample> {
  return "get" in dataset ? dataset.get(index) : dataset[index]!;
}

/** @throws OptError BAD_ARGUMENT */
export function checkDataset(where: string, dataset: unknown): asserts dataset is Dataset<unknown> {
  const { length, get, batch } = (dataset ?? {}) as Partial<BatchedDataset<unknown, unknown>>;
  const isBatched = batch === undefined || typeof batch === "function";
  const isDataset = Array.isArray(dataset) || (typeof get === "function" && isBatched);
  check(
    isDataset,
    "BAD_ARGUMENT",
    where,
    () => `the dataset must have a length and get(index), got ${show(dataset)}.`,
    "For example new TensorDataset(x, y), or an array of samples.",
  );
  check(
    isCount(length) && length < 2 ** 31,
    "BAD_ARGUMENT",
    where,
    () => `length must be an integer from 0, got ${show(length)}.`,
    "Count the samples.",
  );
}

/** @throws OptError BAD_ARGUMENT */
export function checkIndex(where: string, index: number, length: number): void {
  const isIndex = Number.isInteger(index) && index >= 0 && index < length;
  check(
    isIndex,
    "BAD_ARGUMENT",
    where,
    () => `an index must be from 0 to ${length - 1}, got ${show(index)}.`,
    "Count samples from 0.",
  );
}

/** @throws OptError BAD_ARGUMENT for what is no array, and for a position that the dataset does not have */
export function checkIndices(where: string, indices: unknown, length: number): asserts indices is ArrayLike<number> {
  checkList(where, "indices", indices);
  for (let i = 0; i < indices.length; i++) checkIndex(where, indices[i]!, length);
}

export function checkList(where: string, name: string, list: unknown): asserts list is ArrayLike<number> {
  const isList = Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView));
  check(isList, "BAD_ARGUMENT", where, () => `${name} must be an array, got ${show(list)}.`, "For example [0, 1].");
}
