/**
 * The model on several ranks: `opt-run -n 2 ranks.ts`, or `--ranks 2` of the program. Each takes its windows of the text in every
 * step; gradients are averaged. One process that takes the windows of all ranks one by one comes to the same bits.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Generator, init, type Tensor, tidy } from "@opt/core";
import { Alphabet, DataLoader, Windows } from "@opt/data";
import { NAdam } from "@opt/nadam";
import { crossEntropy } from "@opt/nn";
import { type Communicator, connect, DistributedSampler } from "@opt/parallel";
import { type Callback, fit } from "@opt/train";
import { Gpt } from "./model";
import { sonnets } from "./text";

export interface RanksOptions {
  readonly optimizer: keyof typeof optimizers;
  readonly steps: number;
  readonly width: number;
  readonly length: number;
  /** Windows of a rank and step. */
  readonly batch: number;
  readonly seed: number;
}

export interface RanksResult {
  /** Of the first and the last step, on this rank. */
  readonly losses: readonly [number, number];
  /** Of every bit of parameters and state. */
  readonly digest: string;
}

type Batch = [Tensor, Tensor];

const LEARNING_RATE = 3e-3;

const optimizers = {
  NAdam: (model: Gpt) => new NAdam(model.namedParameters(), { lr: LEARNING_RATE }),
  AdamW: (model: Gpt) => new AdamW(model.namedParameters(), { lr: LEARNING_RATE }),
  AMSGrad: (model: Gpt) => new Adam(model.namedParameters(), { lr: LEARNING_RATE, amsgrad: true }),
};

function begin({ optimizer, width, length, seed }: RanksOptions) {
  const text = sonnets();
  const alphabet = new Alphabet(text);
  const generator = new Generator(seed);
  const model = new Gpt({ tokens: alphabet.length, width, length, blocks: 1, heads: 2, generator });
  const windows = new Windows(alphabet.encode(text), { length });
  return { model, optimizer: optimizers[optimizer](model), windows };
}

type Run = ReturnType<typeof begin>;

function batches(windows: Windows, rank: number, size: number, { batch, seed }: RanksOptions): Iterable<Batch> {
  const sampler = new DistributedSampler(windows.length, { rank, size, seed });
  return new DataLoader<Batch, Batch>(windows, { batchSize: batch, sampler });
}

async function endOf(run: Run, losses: readonly number[]): Promise<RanksResult> {
  const hash = createHash("sha256");
  const states = Object.values(run.optimizer.stateDict().state).flatMap((state) => Object.values(state));
  for (const value of [...run.model.parameters(), ...states])
    hash.update(typeof value === "number" ? String(value) : await value.bytes());
  return { losses: [losses[0]!, losses.at(-1)!], digest: hash.digest("hex") };
}

export async function trainOnRanks(options: RanksOptions, communicator: Communicator): Promise<RanksResult> {
  const run = begin(options);
  const last: Callback = {
    onStepEnd({ step }, control) {
      control.stop = step === options.steps;
    },
  };
  const { losses } = await fit(run.model, {
    communicator,
    data: batches(run.windows, communicator.rank, communicator.size, options),
    loss: crossEntropy,
    optimizer: run.optimizer,
    epochs: options.steps,
    callbacks: [last],
  });
  return endOf(run, losses);
}

/** The same in one process, by hand: gradients added in the order of the ranks, then divided once. */
export async function trainAlone(options: RanksOptions, ranks: number): Promise<RanksResult> {
  const run = begin(options);
  const { model, optimizer, windows } = run;
  const samples = Array.from({ length: ranks }, (_, rank) => batches(windows, rank, ranks, options)[Symbol.iterator]());
  const losses: number[] = [];
  for (let step = 0; step < options.steps; step++) {
    const sums = new Map<Tensor, Tensor>();
    for (const [rank, own] of samples.entries()) {
      const [input, target] = own.next().value as Batch;
      const loss = tidy(() => {
        const made = crossEntropy(model.forward(input), target);
        made.backward();
        return made;
      });
      if (rank === 0) losses.push(await loss.item());
      loss.dispose();
      for (const parameter of model.parameters()) {
        const sum = sums.get(parameter);
        sums.set(parameter, sum === undefined ? parameter.grad!.clone() : sum.add(parameter.grad!));
        parameter.grad = null;
      }
    }
    for (const [parameter, sum] of sums) parameter.grad = sum.div(ranks);
    optimizer.step();
    optimizer.zeroGrad();
  }
  for (const own of samples) own.return?.();
  return endOf(run, losses);
}

/** What a rank's program is given. */
export const argumentsOf = (device: string, options: RanksOptions): string[] => [
  "--device",
  device,
  "--options",
  JSON.stringify(options),
];

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
  const { values } = parseArgs({ options: { device: { type: "string" }, options: { type: "string" } } });
  await init(values.device);
  const communicator = await connect();
  const results = await communicator.gather(await trainOnRanks(JSON.parse(values.options!), communicator));
  if (results) console.log(JSON.stringify(results));
  await communicator.close();
}
