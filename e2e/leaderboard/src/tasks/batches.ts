/** Batches without an end, from epochs in drawn orders. */
import type { Generator as Draws, Tensor } from "@opt/core";
import { type BatchedDataset, DataLoader } from "@opt/data";

export function* endless<Row extends Tensor[]>(
  dataset: BatchedDataset<Row, Row>,
  batchSize: number,
  generator: Draws,
): Generator<Row> {
  const loader = new DataLoader<Row, Row>(dataset, { batchSize, shuffle: true, dropLast: true, generator });
  for (;;) yield* loader;
}
