/** A small training run, in two forms that must agree bit for bit: on ranks, and in one process that takes their batches one by one. */
import { Adadelta } from "@opt/adadelta";
import { Adafactor } from "@opt/adafactor";
import { Adagrad } from "@opt/adagrad";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { AdEMAMix } from "@opt/ademamix";
import { ASGD } from "@opt/asgd";
import {
  type BaseOptions,
  type ClipOptions,
  compile,
  Generator,
  init,
  type Optimizer,
  type OptimizerClass,
  type OptimizerState,
  parameter,
  randn,
  type Tensor,
  tensor,
  tidy,
} from "@opt/core";
import { wholesOf } from "@opt/core/backend";
import { Lamb } from "@opt/lamb";
import { Lion } from "@opt/lion";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Embedding, Linear, Module, ReLU, Sequential } from "@opt/nn";
import { DAdaptAdamW, Prodigy } from "@opt/prodigy";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { Rprop } from "@opt/rprop";
import { ScheduleFreeAdamW } from "@opt/schedule-free";
import { SGD } from "@opt/sgd";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import type { Communicator } from "../src/communicator/communicator";
import { digest } from "../src/communicator/digest";
import { DataParallel, type DataParallelOptions } from "../src/data-parallel/data-parallel";
import { FullyShardedDataParallel } from "../src/fully-sharded/fully-sharded";
import { ShardedOptimizer } from "../src/sharded/sharded-optimizer";

/** A branch that some batches do not take: its parameters are unused there. */
class Net extends Module {
  readonly body = new Sequential(new Linear(6, 9, { generator }), new ReLU(), new Linear(9, 4, { generator }));
  /** Unused on every rank, between others. */
  readonly idle = parameter([1, 2]);
  readonly side = new Linear(6, 4, { generator });
  /** Trains in 16 bits. */
  readonly shift = parameter([0.1, -0.2, 0.3, 0.5], { dtype: "bf16" });

  forward(x: Tensor, usesSide: boolean): Tensor {
    const output = this.body.forward(x).add(this.shift.to("f32"));
    return usesSide ? output.add(this.side.forward(x)) : output;
  }
}

let generator = new Generator(0);

export function makeNet(): Net {
  generator = new Generator(5); // every net begins alike
  return new Net();
}

/** A language model's ends with one table: two names of one parameter. */
export class Tied extends Module {
  readonly table = new Embedding(6, 4, { generator: new Generator(1) });
  readonly head = new Linear(4, 6, { bias: false });

  constructor() {
    super();
    this.head.weight = this.table.weight;
  }

  forward(x: Tensor): Tensor {
    return this.head.forward(this.table.forward(x));
  }
}

export interface Run {
  readonly algorithm: keyof typeof ALGORITHMS;
  readonly device: "js" | "wasm" | "cpu";
  readonly steps: number;
  /** Micro-batches of each rank and step. */
  readonly accumulate?: number;
  readonly options?: DataParallelOptions;
  /** By ShardedOptimizer. */
  readonly sharded?: boolean;
  /** By FullyShardedDataParallel. */
  readonly fully?: boolean;
  readonly keepGathered?: boolean;
  readonly shardOver?: number;
  readonly compiled?: boolean;
  readonly clip?: ClipOptions;
  readonly stochasticRounding?: boolean;
}

type Options = BaseOptions & { [option: string]: unknown };

/** Every optimizer, with options that make it keep all the state that it can. */
export const ALGORITHMS = {
  Adadelta: [Adadelta, {}],
  Adafactor: [Adafactor, {}],
  Adagrad: [Adagrad, { initialAccumulatorValue: 0.5, lrDecay: 0.125 }],
  Adam: [Adam, {}],
  AMSGrad: [Adam, { amsgrad: true }],
  AdamW: [AdamW, {}],
  Adamax: [Adamax, {}],
  AdEMAMix: [AdEMAMix, { tAlpha: 5, tBeta3: 5 }],
  ASGD: [ASGD, { t0: 4 }],
  Lamb: [Lamb, { weightDecay: 0.125 }],
  Lion: [Lion, { weightDecay: 0.125 }],
  NAdam: [NAdam, {}],
  DAdaptAdamW: [DAdaptAdamW, { lr: 1, d0: 0.01 }],
  Prodigy: [Prodigy, { lr: 1, d0: 0.001, dCoef: 4 }],
  RAdam: [RAdam, {}],
  Rprop: [Rprop, {}],
  RMSprop: [RMSprop, { momentum: 0.9, centered: true }],
  ScheduleFreeAdamW: [ScheduleFreeAdamW, { warmupSteps: 4, r: 1, weightDecay: 0.125 }],
  SGD: [SGD, { momentum: 0.9, nesterov: true }],
  Muon: [Muon, {}],
  NorMuon: [Muon, { neuronBeta: 0.75 }],
} as const;

function argumentsOf(
  { algorithm, clip, stochasticRounding = false }: Run,
  model: Pick<Module, "namedParameters">,
): [OptimizerClass<Options>, [string, Tensor][], Options] {
  const [algorithmOf, own] = ALGORITHMS[algorithm];
  // Muon takes matrices alone.
  const isTaken = ([, { shape }]: [string, Tensor]) => (algorithmOf as unknown) !== Muon || shape.length === 2;
  const parameters = [...model.namedParameters()].filter(isTaken);
  const options = { lr: 0.01, ...own, ...(clip && { clip }), stochasticRounding } as unknown as Options;
  return [algorithmOf as unknown as OptimizerClass<Options>, parameters, options];
}

export function optimizerOf(run: Run, model: Pick<Module, "namedParameters">): Optimizer<Options> {
  const [algorithm, parameters, options] = argumentsOf(run, model);
  return new algorithm(parameters, options);
}

export function shardedOf(run: Run, model: Module, communicator: Communicator): ShardedOptimizer<Options> {
  return new ShardedOptimizer(...argumentsOf(run, model), communicator);
}

/** The gradients of one micro-batch are added to what is there. */
function backward(learn: Learn, run: Run, step: number, rank: number, micro: number): void {
  tidy(() => {
    const seed = new Generator(1000 * step + 10 * rank + micro);
    const x = randn([5, 6], { generator: seed });
    const y = tensor(Int32Array.from({ length: 5 }, () => Math.floor(seed.nextFloat() * 4)));
    // Ranks of a divided model use the same modules.
    learn(x, y, (step + (run.fully ? 0 : rank)) % 3 !== 0);
  });
}

type Learn = (x: Tensor, y: Tensor, usesSide: boolean) => void;

function learnerOf(forward: (x: Tensor, usesSide: boolean) => Tensor, { compiled }: Run): Learn {
  const learn: Learn = (x, y, usesSide) => crossEntropy(forward(x, usesSide), y).backward();
  return compiled ? compile(learn) : learn;
}

/** Every bit of parameters and state. */
export async function bitsOf(
  model: { namedParameters(): Iterable<[string, Tensor]> },
  optimizer: { stateDict(): OptimizerState | Promise<OptimizerState> },
  wholeOf: (name: string, x: Tensor) => Tensor | Promise<Tensor> = (_, x) => x,
): Promise<Record<string, string>> {
  const bits: Record<string, string> = {};
  const digestOf = async (name: string, x: Tensor) => digest(await (await wholeOf(name, x)).bytes());
  for (const [name, x] of model.namedParameters()) bits[name] = await digestOf(name, x);
  for (const [name, state] of Object.entries((await optimizer.stateDict()).state))
    for (const [key, value] of Object.entries(state))
      bits[`${name}.${key}`] = typeof value === "number" ? String(value) : await digestOf(name, value);
  return bits;
}

export async function trainOnRanks(run: Run, communicator: Communicator): Promise<Record<string, string>> {
  if (run.fully) return trainDivided(run, communicator);
  await init(run.device);
  const model = makeNet();
  const parallel = new DataParallel(model, communicator, run.options);
  const optimizer = run.sharded ? shardedOf(run, model, communicator) : optimizerOf(run, model);
  await train(run, parallel, optimizer, communicator.rank);
  return bitsOf(model, optimizer);
}

/** By FullyShardedDataParallel. */
async function trainDivided(run: Run, communicator: Communicator): Promise<Record<string, string>> {
  await init(run.device);
  const { keepGathered = false, shardOver = communicator.size } = run;
  const parallel = new FullyShardedDataParallel(makeNet(), communicator, { keepGathered, shardOver });
  const optimizer = optimizerOf(run, parallel);
  await train(run, parallel, optimizer, communicator.rank);
  return bitsOf(parallel, optimizer, (_, x) => wholesOf([x], [x.placement])[0]!);
}

async function train(
  run: Run,
  parallel: DataParallel<Net> | FullyShardedDataParallel<Net>,
  optimizer: { step(): unknown; zeroGrad(): void },
  rank: number,
): Promise<void> {
  const { accumulate = 1 } = run;
  const learn = learnerOf((x, usesSide) => parallel.forward(x, usesSide), run);
  for (let step = 0; step < run.steps; step++) {
    parallel.noSync(() => {
      for (let micro = 0; micro < accumulate - 1; micro++) backward(learn, run, step, rank, micro);
    });
    backward(learn, run, step, rank, accumulate - 1);
    await parallel.sync();
    await optimizer.step();
    optimizer.zeroGrad();
  }
}

/** The gradients of all ranks, added in their order, then divided once. */
export async function trainAlone(run: Run, ranks: number): Promise<Record<string, string>> {
  await init(run.device);
  const model = makeNet();
  const optimizer = optimizerOf(run, model);
  const { accumulate = 1 } = run;
  const learn = learnerOf((x, usesSide) => model.forward(x, usesSide), { ...run, compiled: false });
  for (let step = 0; step < run.steps; step++) {
    const sums = new Map<Tensor, Tensor>();
    const parameters = model.parameters();
    for (let rank = 0; rank < ranks; rank++) {
      for (let micro = 0; micro < accumulate; micro++) backward(learn, run, step, rank, micro);
      for (const each of parameters) {
        if (each.grad === null) continue;
        const sum = sums.get(each);
        sums.set(each, sum === undefined ? each.grad.clone() : sum.add(each.grad));
        each.grad = null;
      }
    }
    for (const [each, sum] of sums) each.grad = sum.div(ranks);
    optimizer.step();
    optimizer.zeroGrad();
  }
  return bitsOf(model, optimizer);
}
