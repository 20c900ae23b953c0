/** One run: trains a task's model with an optimizer, and gives its losses and the checksum of its last weights. */
import { ledger } from "@opt/checkpoint";
import { compile, Generator, manualSeed, noGrad, Tensor, tidy } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import { hutchinson } from "@opt/optim";
import { checksumOf } from "@opt-e2e/same-run";
import { computesGradients, type Entrant, made, type Stepper, takenBy } from "./entrants";
import type { Start, Task, Training } from "./tasks/task";

/** Gradients from one evaluation to the next. */
export const EVERY = 10;
/** Gradients from one estimate of the Hessian's diagonal to the next, itself among them. */
const ESTIMATES_EVERY = 10;

/** Milliseconds of the processor, where a host counts them: other programs do not change them. */
function now(): number {
  const { cpuUsage } = globalThis.process ?? {};
  if (cpuUsage === undefined) return performance.now();
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
}

export interface RunOptions {
  readonly lr: number;
  readonly seed: number;
  readonly compiled?: boolean;
  /** Gradients, in place of the task's budget. */
  readonly budget?: number;
  /** Is called with each loss. */
  readonly show?: (gradients: number, loss: number) => void;
}

export interface Outcome {
  /** After 0, 10, 20 ... gradients. */
  readonly losses: readonly number[];
  /** It ended early: a loss was no number. */
  readonly diverged: boolean;
  /** Of the last weights. */
  readonly checksum: string;
  /** Median time of the processor for a gradient, with its share of a step. */
  readonly milliseconds: number;
  readonly stateBytes: number;
}

type Prepared = (start: Start) => Training;

/** @throws OptError where the optimizer cannot train this model */
export async function train(task: Task, prepared: Prepared, entrant: Entrant, options: RunOptions): Promise<Outcome> {
  const { lr, seed, compiled = true, budget = task.budget, show } = options;
  manualSeed(seed);
  const takes = takenBy(entrant);
  const training = prepared({ generator: new Generator(seed), sparse: takes === "tables" });
  const { model } = training;
  const { restLr, isMatrix, isTable } = task;
  const division = { named: [...model.namedParameters()], restLr, isMatrix, isTable };
  const optimizer = made(entrant, takes, lr, division);
  const run = new Run(training, optimizer, compiled && takes !== "tables");
  const losses = [run.evaluated()];
  const times: number[] = [];
  while (run.gradients < budget && Number.isFinite(losses.at(-1))) {
    const [before, start] = [run.gradients, now()];
    await run.step();
    times.push((now() - start) / (run.gradients - before));
    for (let due = losses.length * EVERY; due <= run.gradients && due <= budget; due += EVERY) {
      losses.push(run.evaluated());
      show?.(due, losses.at(-1)!);
    }
  }
  const book = await ledger();
  const outcome = {
    losses: losses.filter(Number.isFinite),
    diverged: !losses.every(Number.isFinite),
    checksum: checksumOf(await book.append(run.gradients, model.stateDict())),
    milliseconds: times.sort((a, b) => a - b)[times.length >> 1]!,
    stateBytes: bytesOf(optimizer.stateDict().state),
  };
  run.dispose();
  return outcome;
}

/** A model in training with an optimizer. */
class Run {
  /** Computed so far. */
  gradients = 0;
  readonly #training: Training;
  readonly #optimizer: Stepper;
  readonly #backward: (...batch: Tensor[]) => Tensor;
  readonly #evaluation: (...unseen: Tensor[]) => Tensor;
  /** A step by gradients that are there. Undefined where the step computes them. */
  readonly #update: (() => void) | undefined;
  readonly #compiled: { dispose(): void }[] = [];

  constructor(training: Training, optimizer: Stepper, isCompiled: boolean) {
    this.#training = training;
    this.#optimizer = optimizer;
    const prepared = <Args extends Tensor[], Result>(body: (...args: Args) => Result): ((...args: Args) => Result) => {
      if (!isCompiled) return (...args) => tidy(() => body(...args));
      const made = compile(body);
      this.#compiled.push(made);
      return made;
    };
    this.#backward = prepared((...batch) => {
      const loss = training.loss(...batch);
      loss.backward();
      return loss.detach();
    });
    this.#evaluation = prepared((...unseen) => noGrad(() => training.evaluation(...unseen)));
    if (!computesGradients(optimizer)) this.#update = prepared(() => optimizer.step());
  }

  async step(): Promise<void> {
    const batch = this.#training.batches.next().value as readonly Tensor[];
    if (this.#optimizer.updateHessian !== undefined && this.gradients % ESTIMATES_EVERY === 0) this.#estimate(batch);
    const closure = () => {
      this.#optimizer.zeroGrad();
      this.gradients++;
      return this.#backward(...batch);
    };
    if (this.#update === undefined) await this.#optimizer.step(closure);
    else {
      closure().dispose();
      this.#update();
    }
    for (const each of batch) each.dispose();
  }

  /** Has Sophia look at the Hessian's diagonal. It counts as a gradient. */
  #estimate(batch: readonly Tensor[]): void {
    this.gradients++;
    tidy(() => hutchinson(this.#training.loss(...batch), this.#training.model.parameters()));
    this.#optimizer.updateHessian!();
    this.#optimizer.zeroGrad();
  }

  evaluated(): number {
    this.#optimizer.eval?.();
    const loss = this.#evaluation(...this.#training.unseen);
    const value = loss.dataSync()[0] as number;
    loss.dispose();
    this.#optimizer.train?.();
    return value;
  }

  dispose(): void {
    for (const each of this.#compiled) each.dispose();
    this.#optimizer.dispose();
    for (const each of [...this.#training.unseen, ...this.#training.model.parameters()]) each.dispose();
  }
}

/** Bytes of all tensors in a state. LBFGS keeps lists of them. */
function bytesOf(value: unknown): number {
  if (value instanceof Tensor) return value.size * byteSize(value.dtype);
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum, each) => sum + bytesOf(each), 0);
}
