/**
 * MNIST on several ranks: `opt-run -n 2 ranks.ts --steps 50`. Each takes its samples of every step; gradients are averaged. The one
 * process beside it takes the batches of all ranks one by one, and comes to the same bits.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { compile, Generator, init, type Tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy, type Sequential } from "@opt/nn";
import { type Communicator, connect, DataParallel, DistributedSampler } from "@opt/parallel";
import { type Batch, type Digits, loadMnist } from "./data";
import { digitNetwork } from "./model";
import { type OptimizerName, optimizers } from "./optimizers";
import { forward } from "./step";

export interface RanksOptions {
  readonly optimizer: OptimizerName;
  readonly steps: number;
  /** Images of a rank and step. */
  readonly batchSize: number;
  readonly seed: number;
}

export interface RanksResult {
  /** Mean over the ranks, of the last step. */
  readonly loss: number;
  /** Of every bit of parameters and state. */
  readonly digest: string;
}

const HIDDEN = 64;
const LEARNING_RATE = 4e-3;

function batches(digits: Digits, rank: number, size: number, { batchSize, seed }: RanksOptions): Iterator<Batch> {
  const sampler = new DistributedSampler(digits.length, { rank, size, seed });
  return new DataLoader(digits, { batchSize, sampler })[Symbol.iterator]();
}

type Trained = ReturnType<(typeof optimizers)[OptimizerName]>;

/** A step in two compiled functions: between them ranks add their gradients. */
function compiledStep(model: Sequential, optimizer: Trained) {
  const forwardBackward = compile(([images, labels]: Batch) => {
    const loss = crossEntropy(forward(model, images), labels);
    loss.backward();
    return loss;
  });
  const update = compile(() => {
    optimizer.step();
    optimizer.zeroGrad();
  });
  return { forwardBackward, update };
}

async function digestOf(model: Sequential, optimizer: Trained): Promise<string> {
  const hash = createHash("sha256");
  const states = Object.values(optimizer.stateDict().state).flatMap((state) => Object.values(state));
  for (const value of [...model.parameters(), ...states])
    hash.update(typeof value === "number" ? String(value) : await value.bytes());
  return hash.digest("hex");
}

/** @param communicator this process's; the device is open */
export async function trainOnRanks(options: RanksOptions, communicator: Communicator): Promise<RanksResult> {
  const { training } = loadMnist();
  const model = digitNetwork(HIDDEN, new Generator(options.seed));
  const parallel = new DataParallel(model, communicator);
  const optimizer = optimizers[options.optimizer](model.namedParameters(), LEARNING_RATE);
  const { forwardBackward, update } = compiledStep(model, optimizer);
  const samples = batches(training, communicator.rank, communicator.size, options);
  let loss: Tensor | undefined;
  for (let step = 0; step < options.steps; step++) {
    loss?.dispose();
    loss = forwardBackward(samples.next().value);
    await parallel.sync();
    update();
  }
  samples.return?.();
  return { loss: await (await communicator.allReduce(loss!, "mean")).item(), digest: await digestOf(model, optimizer) };
}

/** The same in one process: gradients added in the order of the ranks, then divided once. */
export async function trainAlone(options: RanksOptions, ranks: number): Promise<RanksResult> {
  const { training } = loadMnist();
  const model = digitNetwork(HIDDEN, new Generator(options.seed));
  const optimizer = optimizers[options.optimizer](model.namedParameters(), LEARNING_RATE);
  const { forwardBackward, update } = compiledStep(model, optimizer);
  const samples = Array.from({ length: ranks }, (_, rank) => batches(training, rank, ranks, options));
  let mean = 0;
  for (let step = 0; step < options.steps; step++) {
    const sums = new Map<Tensor, Tensor>();
    const losses: number[] = [];
    for (const own of samples) {
      const loss = forwardBackward(own.next().value);
      losses.push(await loss.item());
      loss.dispose();
      for (const parameter of model.parameters()) {
        const sum = sums.get(parameter);
        sums.set(parameter, sum === undefined ? parameter.grad!.clone() : sum.add(parameter.grad!));
        parameter.grad = null;
      }
    }
    for (const [parameter, sum] of sums) parameter.grad = sum.div(ranks);
    update();
    mean = losses.reduce((sum, loss) => sum + loss, 0) / ranks;
  }
  for (const own of samples) own.return?.();
  return { loss: mean, digest: await digestOf(model, optimizer) };
}

/** What a rank's program is given. */
export function argumentsOf(device: string, { optimizer, steps, batchSize, seed }: RanksOptions): string[] {
  const options = { device, optimizer, steps, "batch-size": batchSize, seed };
  return Object.entries(options).map(([name, value]) => `--${name}=${value}`);
}

/** What `--ranks` runs: this file under opt-run. */
export function commandOf(ranks: number, device: string, options: RanksOptions): string[] {
  const launcher = new URL("src/local/cli.ts", import.meta.resolve("@opt/parallel/package.json"));
  return [
    ...[
      ...process.execArgv,
      fileURLToPath(launcher),
      "--no-prefix",
      "-n",
      String(ranks),
      fileURLToPath(import.meta.url),
    ],
    ...argumentsOf(device, options),
  ];
}

if (process.env.OPT_RUN_RANK !== undefined) {
  const strings = { type: "string" } as const;
  const { values } = parseArgs({
    options: { device: strings, optimizer: strings, steps: strings, "batch-size": strings, seed: strings },
  });
  await init(values.device);
  const communicator = await connect();
  const options = {
    optimizer: values.optimizer as OptimizerName,
    steps: Number(values.steps),
    batchSize: Number(values["batch-size"]),
    seed: Number(values.seed),
  };
  const results = await communicator.gather(await trainOnRanks(options, communicator));
  if (results) console.log(JSON.stringify(results));
  await communicator.close();
}
