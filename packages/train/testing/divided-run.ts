/**
 * Runs of `fit`, one after the other on the same processes. A model is whole on each rank ("data"), in parts ("fully"), in divided layers
 * ("tensor"), or both. Batches of ranks differ in number and size. `divided-run.ts <folder> <device> <runs as JSON>`
 */
import { named, renamed } from "../../parallel/testing/told";
import "@opt/kernels-cpu";
import { cpSync } from "node:fs";
import { AdamW } from "@opt/adam-amsgrad";
import { loadCheckpoint } from "@opt/checkpoint";
import { ExponentialMovingAverage, Generator, GradScaler, init, randn, type Tensor, tensor } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { BatchNorm1d, crossEntropy, Dropout, Linear, type Module, ReLU, Sequential } from "@opt/nn";
import {
  ColumnParallelLinear,
  connect,
  FullyShardedDataParallel,
  mesh,
  RowParallelLinear,
  ShardedOptimizer,
} from "@opt/parallel";
import { ScheduleFreeAdamW } from "@opt/schedule-free";
import { checkpoints } from "../src/callbacks/checkpoints";
import { earlyStopping } from "../src/callbacks/early-stopping";
import { fit } from "../src/fit";
import { evaluate, predict } from "../src/fit/evaluate";
import { accuracy } from "../src/metrics/metrics";

export interface DividedRun {
  /** Also that of its checkpoints' folder. */
  readonly name: string;
  readonly kind: "data" | "zero" | "fully" | "tensor" | "both";
  /** The first step overflows. */
  readonly isScaled?: boolean;
  /** Early stopping keeps the first epoch of a schedule-free optimizer. */
  readonly isKept?: boolean;
  /** Its first layer is frozen, and no part of its checkpoints. */
  readonly isFrozen?: boolean;
  /** It stops after this step. */
  readonly last?: number;
  /** It goes on from the checkpoints of the run of this name. */
  readonly from?: string;
}

/** What a rank tells of a run. */
export interface Told {
  refused: string[];
  failed?: string;
  skippedSteps: number;
  scheduled: number;
  averaged: number;
  epochs: Record<string, number>[];
  losses: number[];
  evaluated: Record<string, number>;
  outputs: number[];
  weights: number[][];
  tensors: Record<string, number[]>;
}

const [home = "", device = "js", runs = "[]"] = process.argv.slice(2);
const world = await connect();
const drawn = (seed: number) => ({ generator: new Generator(seed) });

/** Sizes of the batches of each rank: the first has fewer. */
const SIZES = [
  [4, 3, 4],
  [4, 4, 2, 3, 4],
];

async function train(
  { kind, isScaled = false, isKept = false, isFrozen = false, last }: DividedRun,
  folder: string,
): Promise<Told> {
  const isCut = kind === "tensor" || kind === "both";
  const model = isCut ? Math.min(world.size, 2) : 1;
  const grid = mesh(world, { data: world.size / model, model });
  const [samples, layers] = [grid.axis("data"), grid.axis("model")];
  const net: Module = new Sequential(
    isCut ? new ColumnParallelLinear(6, 13, layers, drawn(1)) : new Linear(6, 13, drawn(1)),
    new ReLU(),
    isCut ? new RowParallelLinear(13, 8, layers, drawn(2)) : new Linear(13, 8, drawn(2)),
    new ReLU(),
    new BatchNorm1d(8),
    new Dropout(0),
    new Linear(8, 3, drawn(3)),
  );
  if (isFrozen) net.parameters()[0]!.requiresGrad = false;
  const parallel = kind === "fully" || kind === "both" ? new FullyShardedDataParallel(net, samples) : undefined;
  const weights = parallel ?? net;
  const optimizer =
    kind === "zero"
      ? new ShardedOptimizer(AdamW, net.namedParameters(), { lr: 0.05 }, samples)
      : new (isKept ? ScheduleFreeAdamW : AdamW)(weights.namedParameters(), { lr: 0.05 });
  const ema = new ExponentialMovingAverage(weights.namedParameters(), { decay: 0.8 });
  const batches = SIZES[samples.rank % 2]!.map((size, i): [Tensor, Tensor] => {
    const generator = new Generator(10 * samples.rank + i);
    const labels = Int32Array.from({ length: size }, (_, k) => (k + i) % 3);
    return [randn([size, 6], { generator }), tensor(labels, { dtype: "i32" })];
  });
  /** What `fit` says where nobody tells it, or wrongly, which ranks have other samples. */
  const refused: string[] = [];
  for (const communicator of kind === "tensor" && model > 1 ? [layers, undefined] : []) {
    const options = { data: batches, loss: crossEntropy, optimizer, epochs: 1, ...(communicator && { communicator }) };
    try {
      await fit(net, options);
    } catch (error) {
      refused.push((error as Error).message);
    }
  }
  const interruption = new AbortController();
  let failed: string | undefined;
  const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.5, totalIters: 6 });
  let skippedSteps = 0;
  const scaling = {
    loss: (output: Tensor, target: Tensor) => crossEntropy(output, target).mul(8),
    scaler: new GradScaler({ initScale: 2 ** 127, backoffFactor: 2 ** -120 }),
  };
  const history = await fit(weights, {
    data: batches,
    communicator: samples,
    loss: crossEntropy,
    optimizer,
    ema,
    schedule,
    ...(isScaled && scaling),
    clip: { norm: 0.7 },
    accumulate: 2,
    metrics: [accuracy()],
    validation: batches.slice(samples.rank),
    epochs: 3,
    resume: true,
    signal: interruption.signal,
    callbacks: [
      checkpoints(folder, { every: 1, trainable: isFrozen }),
      ...(isKept ? [earlyStopping({ monitor: "loss", mode: "max", patience: 9 })] : []),
      {
        onStepEnd({ step, skippedSteps: count }) {
          skippedSteps = count;
          if (step === last) interruption.abort();
        },
      },
    ],
  }).catch((error: Error) => {
    failed = error.message;
    return { epochs: [], losses: [] };
  });
  const evaluated = await evaluate(weights, {
    data: batches.slice(0, 2 + (samples.rank % 2)),
    loss: crossEntropy,
    communicator: samples,
  });
  const outputs = await predict(weights, batches.slice(0, 3 - (samples.rank % 2)), { communicator: samples });
  if (optimizer instanceof ScheduleFreeAdamW) optimizer.eval();
  parallel?.dispose();
  const { tensors } = await loadCheckpoint(folder);
  const names = Object.keys(tensors).filter((name) => name !== "fit.losses");
  return {
    refused,
    ...(failed !== undefined && { failed }),
    skippedSteps,
    scheduled: schedule.lastEpoch,
    averaged: ema.stateDict().n_averaged as number,
    epochs: history.epochs.map(({ seconds: _, ...rest }) => rest as Record<string, number>),
    losses: history.losses,
    evaluated: evaluated as Record<string, number>,
    outputs: [...outputs.dataSync()],
    weights: net.namedParameters().map(([, x]) => [...x.dataSync()]),
    tensors: Object.fromEntries(names.sort().map((name) => [name, [...tensors[name]!.dataSync()]])),
  };
}

const told: Record<string, unknown> = {};
for (const run of JSON.parse(runs) as DividedRun[]) {
  const place = `${home}/${run.name}`;
  if (run.from !== undefined && world.rank === 0) cpSync(`${home}/${run.from}`, place, { recursive: true });
  await world.barrier();
  await init(device);
  told[run.name] = await world.gather(JSON.parse(JSON.stringify(await train(run, place), named), renamed));
}
if (world.rank === 0) process.stdout.write(JSON.stringify(told, named));
await world.close();
