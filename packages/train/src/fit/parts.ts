/** What `fit` is given: data, models, losses, optimizers, schedules, ranks. */
import type { Communicator, Layout } from "@opt/checkpoint";
import type { Group, OptimizerState, Tensor } from "@opt/core";
import type { Module } from "@opt/nn";

/** What `fit` asks of an optimizer: every `Optimizer` and `ShardedOptimizer` has it. */
export interface FitOptimizer {
  readonly groups: readonly Pick<Group<{ lr: number }>, "lr" | "params">[];
  step(): void | Promise<void>;
  zeroGrad(): void;
  stateDict(): OptimizerState | Promise<OptimizerState>;
  loadStateDict(state: OptimizerState): void;
  /** True for `LBFGS` and `SAM`, which `fit` rejects: a step of theirs calls a closure. */
  readonly needsClosure?: boolean;
}

/** What `fit` asks of a learning-rate schedule: those of `@opt/core/schedules` have it. */
export interface FitSchedule {
  step(metric?: number): void;
  /** Gets the metric of each epoch. */
  observe?(metric: number): void;
  stateDict(): object;
  loadStateDict(state: unknown): void;
}

/** What `fit` asks of ranks: the communicator that `connect` of `@opt/parallel` returns has it. */
export interface FitCommunicator extends Communicator {
  /** Whether it is true on one rank. */
  any(value: boolean): Promise<boolean>;
  allGather(x: Tensor): Promise<Tensor>;
  /** x = the sum over the ranks, in place. */
  allReduce(x: Tensor): Promise<Tensor>;
  /** A `DataParallel` of the model. */
  replicate(model: Module): Replica;
  placing(tensors: NamedTensors): Placing;
}

export type NamedTensors = Iterable<readonly [name: string, tensor: Tensor]>;

/** Who saves tensors together, and which rank has which part of them. */
export interface Placing {
  readonly communicator: FitCommunicator;
  readonly layout: Layout;
}

/** What a rank has of a model's weights: a `Module` has all, a `FullyShardedDataParallel` its parts. */
export interface Weights {
  namedParameters(): [string, Tensor][];
  /** Parameters and buffers. */
  namedTensors(): [string, Tensor][];
  stateDict(): Record<string, Tensor>;
  loadStateDict(state: Readonly<Record<string, Tensor>>, options?: { readonly strict?: boolean }): void;
}

/** A model whose gradients are averaged over the ranks. */
export interface Replica {
  /** What sums of gradients are divided by. */
  divisor: number;
  sync(): Promise<void>;
  noSync<Result>(body: () => Result): Result;
  dispose(): void;
}

/** A `DataParallel` or a `FullyShardedDataParallel` of `@opt/parallel`. */
export interface ParallelModel extends Replica, Partial<Weights> {
  readonly module: Module;
  readonly communicator: FitCommunicator;
  forward(...inputs: never[]): unknown;
  /** Of a model in parts, as the two below: this rank has no samples where others have some. */
  shadow?(): void;
  recorded?<Result>(body: () => Result): Result;
  placing?(tensors: NamedTensors): Placing;
}

/** The batches of an epoch: a `DataLoader`, an array, or a function that returns an iterable. */
export type FitData<Batch> = Iterable<Batch> | AsyncIterable<Batch> | (() => Iterable<Batch> | AsyncIterable<Batch>);

/** A loss as a sum, and over how many: tokens, pixels, or weights of samples. Batches of any sizes then add up exactly. */
export interface SummedLoss {
  /** One element. */
  readonly sum: Tensor;
  /** One element. A number is fixed by the compiled step: pass one that follows from shapes. */
  readonly count: Tensor | number;
}

/** What a forward computes. Metrics need `output` and `target`. */
export interface Forwarded {
  /** Mean over the samples of the batch, one element; or a sum and its count. */
  readonly loss: Tensor | SummedLoss;
  readonly output?: Tensor;
  readonly target?: Tensor;
}

/** How a batch becomes a loss. */
export interface ForwardOptions<Batch> {
  /** Loss of an output and its target, for batches `[input, target]`: `crossEntropy`, `mseLoss`. A mean, or `{ sum, count }`. */
  readonly loss?: (output: Tensor, target: Tensor) => Tensor | SummedLoss;
  /** Instead of `loss`, for all other batches and models: returns the loss, `{ sum, count }`, or `{ loss, output, target }`. */
  readonly forward?: (batch: Batch) => Tensor | SummedLoss | Forwarded;
}
