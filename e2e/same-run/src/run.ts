/** Trains a model on the default device and keeps a ledger: parameters, buffers and optimizer state after each step. */
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { type LedgerLine, ledger, optimizerContents } from "@opt/checkpoint";
import { compile, Generator, manualSeed, type Tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import type { Module } from "@opt/nn";
import { SGD } from "@opt/sgd";
import { tasks } from "./models";

export interface RunOptions {
  readonly model: keyof typeof tasks;
  readonly optimizer: keyof typeof optimizers;
  readonly steps: number;
  readonly compiled?: boolean;
}

/** Half batches of a step. One process takes them in turn; of two ranks, each takes one. */
const HALVES = 2;

const optimizers = {
  NAdam: (model: Module) => new NAdam(model.namedParameters(), { lr: 3e-3 }),
  AdamW: (model: Module) => new AdamW(model.namedParameters(), { lr: 3e-3 }),
  AMSGrad: (model: Module) => new Adam(model.namedParameters(), { lr: 3e-3, amsgrad: true }),
  SGD: (model: Module) => new SGD(model.namedParameters(), { lr: 0.05, momentum: 0.9, nesterov: true }),
};

/** One of two ranks, which averages gradients with the other. */
export interface Rank {
  readonly rank: number;
  sync(): Promise<void>;
}

/**
 * @param rankOf divides the model: each rank takes half of every batch
 * @param show is called with each line, and waited for
 */
export async function trainedLedger(
  options: RunOptions,
  rankOf?: (model: Module) => Rank,
  show?: (line: LedgerLine) => Promise<void>,
): Promise<readonly LedgerLine[]> {
  manualSeed(1);
  const task = tasks[options.model](new Generator(7));
  const optimizer = optimizers[options.optimizer](task.model);
  const own = rankOf?.(task.model);
  const share = own ? 1 : 1 / HALVES;
  const backward = (input: Tensor, labels: Tensor) => {
    task.loss(input, labels).mul(share).backward();
  };
  const update = () => {
    optimizer.step();
    optimizer.zeroGrad();
  };
  const [forwardBackward, step] = options.compiled ? [compile(backward), compile(update)] : [backward, update];
  const book = await ledger();
  for (let n = 1; n <= options.steps; n++) {
    for (let half = 0; half < HALVES; half++) {
      const { input, labels } = task.batch();
      if (own === undefined || own.rank === half) forwardBackward(input, labels);
      input.dispose();
      labels.dispose();
    }
    await own?.sync();
    step();
    const { tensors } = optimizerContents(optimizer.stateDict());
    const line = await book.append(n, { ...task.model.stateDict(), ...tensors });
    await show?.(line);
  }
  return book.lines;
}
