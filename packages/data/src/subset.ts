/** Parts of datasets. */
import { check, checkGenerator, defaultGenerator, type Generator, show } from "@opt/core";
import { batchOf } from "./batch";
import type { Collated } from "./collate";
import {
  type BatchedDataset,
  checkDataset,
  checkIndex,
  checkIndices,
  checkList,
  type Dataset,
  isCount,
  sampleOf,
} from "./dataset";

/** Some samples of a dataset, in the order of `indices`. */
export class Subset<Sample, Batch = Collated<Sample>> implements BatchedDataset<Sample, Batch> {
  readonly indices: Int32Array;

  /** @throws OptError BAD_ARGUMENT for a position that the dataset does not have */
  constructor(
    readonly dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
    indices: ArrayLike<number>,
  ) {
    checkDataset("Subset", dataset);
    checkIndices("Subset", indices, dataset.length);
    this.indices = Int32Array.from(indices);
  }

  get length(): number {
    return this.indices.length;
  }

  get(index: number): Sample | Promise<Sample> {
    checkIndex("Subset", index, this.length);
    return sampleOf<Sample>(this.dataset, this.indices[index]!);
  }

  batch(indices: Int32Array): Batch | Promise<Batch> {
    checkIndices("Subset", indices, this.length);
    return batchOf(
      this.dataset,
      indices.map((index) => this.indices[index]!),
    );
  }
}

/**
 * Parts of a dataset that have no sample in common, as PyTorch's `random_split` makes them.
 *
 * @param lengths counts that add up to the dataset's length, or fractions that add up to 1: then what rounding leaves goes to the first parts
 * @throws OptError BAD_ARGUMENT
 * @example
 * const digits = new TensorDataset(randn([50, 784]), randn([50, 1]));
 * const [training, validation] = randomSplit(digits, [0.9, 0.1], new Generator(1)); // 45 and 5
 */
export function randomSplit<
  Sample,
  Batch = Collated<Sample>,
  const Lengths extends readonly number[] = readonly number[],
>(
  dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
  lengths: Lengths,
  generator: Generator = defaultGenerator,
): { -readonly [Part in keyof Lengths]: Subset<Sample, Batch> } {
  const where = "randomSplit";
  checkDataset(where, dataset);
  checkGenerator(where, generator);
  checkList(where, "lengths", lengths);
  const areNumbers = lengths.every((length) => typeof length === "number");
  const counts = areNumbers ? countsOf(lengths, dataset.length) : [];
  const total = counts.reduce((sum, count) => sum + count, 0);
  const isWhole = areNumbers && total === dataset.length && counts.every(isCount);
  check(
    isWhole,
    "BAD_ARGUMENT",
    where,
    () => `lengths must add up to the ${dataset.length} samples or to 1, got ${show(lengths)}.`,
    "For example [0.9, 0.1].",
  );
  const order = generator.permutation(dataset.length);
  let start = 0;
  return counts.map((count) => {
    start += count;
    return new Subset<Sample, Batch>(dataset, order.subarray(start - count, start));
  }) as { -readonly [Part in keyof Lengths]: Subset<Sample, Batch> };
}

function countsOf(lengths: readonly number[], total: number): number[] {
  const sum = lengths.reduce((a, b) => a + b, 0);
  const areFractions = lengths.every((part) => part >= 0 && part <= 1) && Math.abs(sum - 1) < 1e-9;
  if (!areFractions) return [...lengths];
  const counts = lengths.map((part) => Math.floor(part * total));
  let left = total - counts.reduce((a, b) => a + b, 0);
  for (let i = 0; left > 0; i = (i + 1) % counts.length, left--) counts[i]!++;
  return counts;
}
