/** A program of several ranks: trains by `fit` and by hand, stops and resumes, and rank 0 says what came out. `ranks-run.ts <folder>` */
import { AdamW } from "@opt/adam-amsgrad";
import { compile, Generator, type Tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { connect, DataParallel, DistributedSampler, ShardedOptimizer } from "@opt/parallel";
import { checkpoints } from "../callbacks/checkpoints";
import { fit } from "../fit/fit";
import { accuracy } from "../metrics/metrics";
import { type Batch, dataset, ROWS } from "./runs";

const communicator = await connect();
const { rank, size } = communicator;
const EPOCHS = 2;

function begin(isSharded: boolean) {
  const generator = new Generator(1);
  const model = new Sequential(new Linear(6, 12, { generator }), new ReLU(), new Linear(12, 3, { generator }));
  const parallel = new DataParallel(model, communicator);
  const optimizer = isSharded
    ? new ShardedOptimizer(AdamW, model.namedParameters(), { lr: 0.02 }, communicator)
    : new AdamW(model.namedParameters(), { lr: 0.02 });
  const sampler = new DistributedSampler(ROWS, { rank, size, seed: 3 });
  const data = new DataLoader<[Tensor, Tensor], Batch>(dataset([6], 2) as never, { batchSize: 8, sampler });
  return { model, parallel, optimizer, sampler, data };
}

const words = async ({ model }: ReturnType<typeof begin>) =>
  (await Promise.all(model.parameters().map(async (x) => Buffer.from(await x.bytes()).toString("hex")))).join();

async function byHand() {
  const run = begin(false);
  const forwardBackward = compile(([x, y]: Batch) => crossEntropy(run.parallel.forward(x), y).backward());
  const update = compile(() => {
    run.optimizer.step();
    run.optimizer.zeroGrad();
  });
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    run.sampler.setEpoch(epoch);
    for (const batch of run.data as Iterable<Batch>) {
      forwardBackward(batch);
      await run.parallel.sync();
      update();
    }
  }
  return words(run);
}

async function byFit(isSharded: boolean, more: object = {}) {
  const run = begin(isSharded);
  const { parallel, optimizer, data } = run;
  const metrics = [accuracy()];
  const options = {
    data: data as Iterable<Batch>,
    optimizer,
    loss: crossEntropy,
    epochs: EPOCHS,
    metrics,
    callbacks: [],
  };
  const { epochs } = await fit(parallel, { ...options, ...more });
  const told = epochs.map(({ loss, accuracy: share }) => ({ loss, accuracy: share }));
  return { words: await words(run), epochs: told };
}

const hand = await byHand();
const whole = await byFit(false);
const sharded = await byFit(true);
const saving = () => checkpoints(process.argv[2]!, { every: 1 });
const controller = new AbortController();
const stop = { onStepEnd: ({ step }: { step: number }) => step === 4 && controller.abort() };
await byFit(true, { callbacks: [saving(), stop], signal: controller.signal });
const resumed = await byFit(true, { callbacks: [saving()], resume: true });
const results = await communicator.gather({ hand, whole, sharded, resumed });
if (results) console.log(JSON.stringify(results));
await communicator.close();
