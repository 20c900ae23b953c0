/** A program of several ranks: each way of cutting samples among ranks, and rank 0 says what one process makes of the same batches. */
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, GradScaler, init, type Tensor, where } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { connect, DataParallel } from "@opt/parallel";
import { fit } from "../src/fit";
import type { FitOptions } from "../src/fit/options";
import type { Batch } from "./runs";

await init(process.argv[2]);
const communicator = await connect();
const { rank, size } = communicator;

const ROWS = 41; // 14 of each rank, in batches of 4: the last one has 2
const generator = new Generator(2);
const inputs = Float32Array.from({ length: ROWS * 6 }, () => generator.nextFloat() - 0.5);
const labels = Int32Array.from({ length: ROWS }, () => Math.floor(generator.nextFloat() * 4) - 1); // -1 is padding
const dataset = new TensorDataset({ data: inputs, shape: [ROWS, 6] }, { data: labels, shape: [ROWS] });
const loader = () =>
  new DataLoader<[Tensor, Tensor], Batch>(dataset as never, {
    batchSize: 4,
    shuffle: true,
    generator: new Generator(4),
  });

/** Batches of each rank: of one epoch, or of other sizes on each rank. */
const ofRanks: Record<"alike" | "own", Batch[][]> = {
  alike: Array.from({ length: size }, (_, rank) =>
    Array.from(loader().shard({ rank, size }) as Iterable<Batch>, ([x, y]): Batch => [x.clone(), y.clone()]),
  ),
  own: Array.from({ length: size }, (_, rank) =>
    [0, 1, 2, 3].map((i): Batch => {
      const rows = Int32Array.from({ length: 1 + ((i + 2 * rank) % 5) }, (_, row) => (7 * i + 11 * rank + row) % ROWS);
      return dataset.batch(rows) as Batch;
    }),
  ),
};

const mean = (output: Tensor, target: Tensor) => crossEntropy(output, target.maximum(0));
const sum = (output: Tensor, target: Tensor) => {
  const isThere = target.ge(0);
  const each = crossEntropy(output, target.maximum(0), { reduction: "none" });
  return { sum: where(isThere, each, 0).sum(), count: isThere.to("f32").sum() };
};

type Extras = Partial<FitOptions<Batch>>;

/** Weights in bits, and as numbers. */
async function train(data: Iterable<Batch>, extras: Extras, dtype: "f32" | "f64", parallel?: boolean) {
  const seeded = { generator: new Generator(1) };
  const made = new Sequential(new Linear(6, 8, seeded), new ReLU(), new Linear(8, 3, seeded)).to(dtype);
  const model = parallel ? new DataParallel(made, communicator) : made;
  const optimizer = new AdamW(made.namedParameters(), { lr: 0.02 });
  const cast = ([x, y]: Batch) => [x.to(dtype), y] as const;
  const { loss, ...rest } = extras;
  const forward = (batch: Batch) => {
    const [x, y] = cast(batch);
    return loss!(made.forward(x), y);
  };
  await fit(model, { data, forward, optimizer, epochs: 1, callbacks: [], ...rest });
  if (model instanceof DataParallel) model.dispose();
  return made.parameters().flatMap((each) => Array.from(each.dataSync()));
}

/** One process takes the ranks' batches in their order. */
const inOrder = (batches: readonly Batch[][]) => batches[0]!.flatMap((_, i) => batches.map((ofRank) => ofRank[i]!));

/** Equal words are promised where each rank takes one batch a step; else equal numbers. */
const cases: Record<string, Omit<Extras, "data"> & { data: "alike" | "own"; parallel?: boolean; dtype?: "f64" }> = {
  mean: { data: "alike", loss: mean },
  "mean, scaled and clipped": { data: "alike", loss: mean, clip: { norm: 0.1 }, scaler: new GradScaler() },
  "mean, of a DataParallel": { data: "alike", loss: mean, parallel: true },
  sum: { data: "alike", loss: sum },
  "sum, eager": { data: "alike", loss: sum, compile: false },
  "mean of own batches": { data: "own", loss: mean },
  "sum of own batches": { data: "own", loss: sum },
  "mean, accumulated": { data: "alike", loss: mean, accumulate: 3, dtype: "f64" },
  "sum, accumulated": { data: "alike", loss: sum, accumulate: 3, dtype: "f64" },
  "mean of own batches, accumulated": { data: "own", loss: mean, accumulate: 3, dtype: "f64" },
  "sum of own batches, accumulated": { data: "own", loss: sum, accumulate: 3, dtype: "f64" },
};

const results: Record<string, { ranks: number[]; alone: number[] }> = {};
for (const [name, { data, parallel, dtype = "f32", ...extras }] of Object.entries(cases)) {
  const own = data === "alike" && !parallel ? (loader() as Iterable<Batch>) : ofRanks[data][rank]!;
  const scaler = extras.scaler && new GradScaler({ initScale: 64 });
  const ranks = await train(own, { ...extras, scaler, ...(parallel ? {} : { communicator }) }, dtype, parallel);
  const accumulate = size * (extras.accumulate ?? 1);
  const again = extras.scaler && new GradScaler({ initScale: 64 });
  // A step of each rank has its batches one behind the other: their sum is the same in any order, but for rounding.
  results[name] = {
    ranks,
    alone: await train(inOrder(ofRanks[data]), { ...extras, accumulate, scaler: again }, dtype),
  };
}
const all = await communicator.gather(results);
if (all) console.log(JSON.stringify(all));
await communicator.close();
