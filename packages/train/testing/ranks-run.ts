/** A program of several ranks: trains by `fit` and by hand, stops and resumes, and rank 0 says what came out. `ranks-run.ts <folder>` */
import { named } from "../../parallel/testing/told";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, compile, ExponentialMovingAverage, Generator, init, type Tensor } from "@opt/core";
import { LinearLR } from "@opt/core/schedules";
import { DataLoader } from "@opt/data";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { connect, DataParallel, DistributedSampler, ShardedOptimizer } from "@opt/parallel";
import { checkpoints } from "../src/callbacks/checkpoints";
import { csv } from "../src/callbacks/csv";
import { earlyStopping } from "../src/callbacks/early-stopping";
import { logger } from "../src/callbacks/logger";
import { progress } from "../src/callbacks/progress";
import { tensorBoard } from "../src/callbacks/tensor-board";
import { fit } from "../src/fit";
import { evaluate, predict } from "../src/fit/evaluate";
import { accuracy } from "../src/metrics/metrics";
import { type Batch, dataset, ROWS } from "./runs";

const [folder, device] = process.argv.slice(2) as [string, string];
await init(device);
const communicator = await connect();
const { rank, size } = communicator;
const EPOCHS = 2;

const loaderOf = (seed: number, options: object) =>
  new DataLoader<[Tensor, Tensor], Batch>(dataset([6], seed) as never, { batchSize: 8, ...options });

function begin(kind: "AdamW" | "NAdam" | "sharded" = "AdamW") {
  const generator = new Generator(1);
  const model = new Sequential(new Linear(6, 12, { generator }), new ReLU(), new Linear(12, 3, { generator }));
  const params = model.namedParameters();
  const optimizer =
    kind === "sharded"
      ? new ShardedOptimizer(AdamW, params, { lr: 0.02 }, communicator)
      : new { AdamW, NAdam }[kind](params, { lr: 0.02 });
  const schedule = new LinearLR(optimizer, { startFactor: 1, endFactor: 0.1, totalIters: 6 });
  const ema = new ExponentialMovingAverage(params, { decay: 0.9 });
  return { model, optimizer, schedule, ema };
}

const hex = async (all: Iterable<unknown>) =>
  (await Promise.all([...all].map(async (x) => Buffer.from(await (x as Tensor).bytes()).toString("hex")))).join();

/** Weights and averages. */
const words = ({ model, ema }: ReturnType<typeof begin>) =>
  hex([...model.parameters(), ...Object.values(ema.stateDict()).filter((value) => typeof value !== "number")]);

/** Of each epoch, the batches of this rank. */
function* epochsOf(isSampled: boolean): Iterable<Iterable<Batch>> {
  const sampler = new DistributedSampler(ROWS, { rank, size, seed: 3 });
  const sampled = loaderOf(2, { sampler });
  const shared = loaderOf(2, { shuffle: true, generator: new Generator(4) }).shard(communicator);
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    sampler.setEpoch(epoch);
    yield (isSampled ? sampled : shared) as Iterable<Batch>;
  }
}

async function byHand(isSampled: boolean, kind?: "NAdam") {
  const run = begin(kind);
  const parallel = new DataParallel(run.model, communicator);
  const forwardBackward = compile(([x, y]: Batch) => crossEntropy(parallel.forward(x), y).backward());
  const update = compile(() => {
    clipGradNorm(run.model.parameters(), 0.5);
    run.optimizer.step();
    run.optimizer.zeroGrad();
    run.ema.update();
  });
  for (const batches of epochsOf(isSampled))
    for (const batch of batches) {
      forwardBackward(batch);
      await parallel.sync();
      update();
      run.schedule.step();
    }
  parallel.dispose();
  return words(run);
}

const sampled = () => loaderOf(2, { sampler: new DistributedSampler(ROWS, { rank, size, seed: 3 }) });

/** By `communicator`, or with a `DataParallel`. */
async function byFit(how: "communicator" | "model", kind?: "NAdam" | "sharded", more: object = {}) {
  const run = begin(kind);
  const isModel = how === "model";
  const { model, ...state } = run;
  const parallel = isModel ? new DataParallel(model, communicator) : undefined;
  const { epochs, losses } = await fit<Batch>(parallel ?? model, {
    ...state,
    ...(isModel ? {} : { communicator }),
    data: (isModel ? sampled() : loaderOf(2, { shuffle: true, generator: new Generator(4) })) as Iterable<Batch>,
    validation: loaderOf(9, {}) as Iterable<Batch>,
    loss: crossEntropy,
    clip: { norm: 0.5 },
    epochs: EPOCHS,
    metrics: [accuracy()],
    callbacks: [],
    ...more,
  });
  parallel?.dispose();
  const told = epochs.map(({ seconds: _, ...record }) => record);
  return { words: await words(run), epochs: told, steps: losses.length };
}

/** Only one rank, and each another one, asks for the end. */
const aborted = (at: number) => {
  const controller = new AbortController();
  const stop = { onStepEnd: ({ step }: { step: number }) => step === at && rank === size - 1 && controller.abort() };
  return { signal: controller.signal, stop };
};
const saving = () => checkpoints(`${folder}/checkpoints`, { every: 1 });
const interrupted = aborted(2);
const lines: string[] = [];
const noted = { ...logger((record) => lines.push(`${record.epoch} ${record.step}`)) };
const stopped = {
  onStepEnd({ step }: { step: number }, control: { stop: boolean }) {
    if (step === 3 && rank === 0) control.stop = true;
  },
};
const writing = [
  csv(`${folder}/epochs.csv`),
  tensorBoard(`${folder}/board`),
  progress({ stream: { write: (text) => lines.push(text.split("  ")[0]!) } }),
];

/** Alone, the whole data. */
const { model } = begin();
const held = loaderOf(9, {});
const outputs = await predict(model, held);
const alone = await evaluate(model, { data: held as Iterable<Batch>, loss: crossEntropy, metrics: [accuracy()] });
const together = { data: held as Iterable<Batch>, loss: crossEntropy, metrics: [accuracy()], communicator };
const results = await communicator.gather({
  hand: [await byHand(true), await byHand(false), await byHand(false, "NAdam")],
  fits: [
    await byFit("model"),
    await byFit("communicator"),
    await byFit("communicator", "NAdam", { callbacks: [noted, ...writing] }),
  ],
  sharded: await byFit("communicator", "sharded"),
  interrupted: await byFit("communicator", "sharded", {
    callbacks: [saving(), interrupted.stop],
    signal: interrupted.signal,
  }),
  resumed: await byFit("communicator", "sharded", { callbacks: [saving()], resume: true }),
  stopped: (await byFit("communicator", "NAdam", { callbacks: [checkpoints(`${folder}/stopped`), stopped] })).steps,
  early: (
    await byFit("communicator", undefined, {
      epochs: 9,
      callbacks: [earlyStopping({ monitor: "loss", mode: "max", patience: 2 })],
    })
  ).epochs.length,
  lines,
  alone,
  evaluated: await evaluate(model, together),
  outputs: await hex([outputs]),
  predicted: await hex([await predict(model, held, { communicator })]),
});
if (results) console.log(JSON.stringify(results, named));
await communicator.close();
