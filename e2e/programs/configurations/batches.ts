/** Samples of a configuration, in the order of each epoch: of the loader that ranks divide, and by arithmetic. */

import { Generator, type Tensor, where } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { type Configuration, EPOCHS, Random, STEP_SAMPLES, samplesOf } from "@opt/testkit/configurations";
import { SAMPLES } from "./models";

/** Inputs, targets, and 1 for samples by which a gradient is to overflow. */
export type Batch = readonly [x: Tensor, y: Tensor, overflows: Tensor];

const product = (extents: readonly number[]) => extents.reduce((a, b) => a * b, 1);

/** Targets below 0 are padding. */
function datasetOf(one: Configuration) {
  const { x, words, y, classes } = SAMPLES[one.model];
  const count = samplesOf(one);
  const random = new Random(one.seed);
  const [inputs, targets] = [count * product(x), count * product(y)];
  const number = () => (words > 0 ? random.below(words) : random.normal());
  const input = Array.from({ length: inputs }, number);
  const isPadding = () => one.counted === true && random.below(3) === 0;
  return new TensorDataset(
    { data: (words > 0 ? Int32Array : Float32Array).from(input), shape: [count, ...x] },
    {
      data: Int32Array.from({ length: targets }, () => (isPadding() ? -1 : random.below(classes))),
      shape: [count, ...y],
    },
    {
      data: Float32Array.from({ length: count }, (_, i) => (one.overflows?.includes(i) ? 1 : 0)),
      shape: [count],
    },
  );
}

export function loaderOf(one: Configuration, batchSize: number): DataLoader<unknown, Batch> {
  const generator = new Generator(one.seed + 1);
  return new DataLoader(datasetOf(one) as never, { batchSize, shuffle: true, generator });
}

/** Samples of a step that a rank has in each of its batches. */
export const batchSizeOf = ({ data, accumulate }: { data: number; accumulate: number }): number =>
  STEP_SAMPLES / (data * accumulate);

/** The samples of each epoch in their order, as one process takes them. */
export function ordersOf(one: Configuration): number[][] {
  const numbers = Array.from({ length: samplesOf(one) }, (_, i) => i);
  const loader = new DataLoader(numbers, { shuffle: true, generator: new Generator(one.seed + 1) });
  return Array.from({ length: EPOCHS }, () => Array.from(loader, (batch) => batch.dataSync()[0]!));
}

/** The batches of a step by their ranks: each rank has every `data`-th sample of the order, or a contiguous part of it. */
export function batchesOf(
  one: Configuration,
  order: readonly number[],
  step: number,
  data: number,
  accumulate: number,
) {
  const dataset = datasetOf(one);
  const size = batchSizeOf({ data, accumulate });
  const own = order.slice(step * STEP_SAMPLES, (step + 1) * STEP_SAMPLES);
  const perRank = STEP_SAMPLES / data;
  const begin = (rank: number) => Math.floor((order.length * rank) / data);
  const ofPart = (rank: number) =>
    order.slice(begin(rank), begin(rank + 1)).slice(step * perRank, (step + 1) * perRank);
  return Array.from({ length: data }, (_, rank) => {
    const samples = one.uneven ? ofPart(rank) : own.filter((_, i) => i % data === rank);
    const count = Math.ceil(samples.length / size);
    return Array.from(
      { length: count },
      (_, i) => dataset.batch(Int32Array.from(samples.slice(i * size, (i + 1) * size))) as unknown as Batch,
    );
  });
}

/** Of a batch: a mean, or a sum and how many targets it is of. */
export function lossOf(one: Configuration, output: Tensor, [, y]: Batch): { sum: Tensor; count: Tensor } | Tensor {
  const classes = output.shape.at(-1)!;
  const [flat, labels] = [output.reshape([output.size / classes, classes]), y.reshape([y.size])];
  if (!one.counted) return crossEntropy(flat, labels);
  const isThere = labels.ge(0);
  const each = crossEntropy(flat, labels.maximum(0), { reduction: "none" });
  return { sum: where(isThere, each, 0).sum(), count: isThere.to("f32").sum() };
}
