/** The loop of `fit`: epochs, batches, optimizer steps, validation. */
import type { CheckpointContents } from "@opt/checkpoint";
import type { Module } from "@opt/nn";
import { Reads } from "../metrics/reads";
import { type Evaluation, evaluation } from "./evaluate";
import type { Callback, FitControl, FitState, History } from "./events";
import { Hooks } from "./hooks";
import { batchesOf, checkBatches, forwardOf, placed, shareOf } from "./inputs";
import { type FitOptions, WHERE } from "./options";
import type { FitCommunicator, ParallelModel, Replica } from "./parts";
import { pauses } from "./pause";
import { contentsOf, loaderStateOf, type Run, resumeRun } from "./run-state";
import { type TrainingStep, trainingStep } from "./step";
import { samplesOf, Totals } from "./totals";

const STEPS_OF_A_CHECK = 16;

export class Loop<Batch> implements FitState, FitControl, Run<Batch> {
  readonly model: Module;
  readonly communicator: FitCommunicator | undefined;
  readonly options: FitOptions<Batch>;
  epoch = 0;
  step = 0;
  epochStep = 0;
  batches = 0;
  seconds = 0;
  isEpochDone = false;
  stop = false;
  error: unknown;
  checkpoint: string | undefined;
  readonly history: History = { epochs: [], losses: [] };
  readonly totals: Totals;
  /** The loop asks for one more batch after a stop, to see whether the epoch is over. */
  loader: object | null | undefined;
  readonly hooks: Hooks;
  readonly #step: TrainingStep<Batch>;
  readonly #evaluation: Evaluation | undefined;
  /** Made here, of a model that is not one. */
  readonly #replica: Replica | undefined;
  /** Numbers of the last validation, under their names in history. */
  #validated: Record<string, number> = {};
  readonly #isPlateau: boolean;
  readonly #pause = pauses();
  /** On several ranks: that one of them was interrupted. */
  #agreed: boolean | undefined;
  #hasWarned = false;
  /** The step of the last check. */
  #checked = 0;

  constructor(
    model: Module | ParallelModel,
    given: FitOptions<Batch>,
    readonly callbacks: readonly Callback[],
  ) {
    const { module, parallel, communicator } = placed(WHERE, model, given.communicator);
    const { validation, metrics = [], compile, schedule } = given;
    this.options = { ...given, data: shareOf(given.data, given.communicator, true) };
    this.model = module;
    this.communicator = communicator;
    this.totals = new Totals(metrics);
    const forward = forwardOf(WHERE, module, given);
    if (parallel === undefined) this.#replica = communicator?.replicate(module);
    const replica = communicator && communicator.size > 1 ? (parallel ?? this.#replica) : undefined;
    this.#step = trainingStep({ module, replica, forward, options: this.options });
    if (validation !== undefined) {
      const measuring = { data: shareOf(validation, given.communicator, false), metrics, compile };
      this.#evaluation = evaluation(module, forward, measuring, communicator);
    }
    const { kind } = (schedule?.stateDict() ?? {}) as { kind?: string };
    this.#isPlateau = kind === "ReduceLROnPlateau";
    const agree = () => this.#agree();
    const agreement = replica ? [{ onTrainBegin: agree, onStepEnd: agree, onEpochEnd: agree }] : [];
    const own = callbacks.filter(({ firstRankOnly }) => !firstRankOnly || this.#isFirstRank);
    // A checkpoint has what the other callbacks have done.
    const ordered = [...own.filter(({ saves }) => !saves), ...agreement, ...own.filter(({ saves }) => saves)];
    this.hooks = new Hooks(ordered, this, this);
  }

  get optimizer() {
    return this.options.optimizer;
  }

  get ema() {
    return this.options.ema;
  }

  get epochs(): number {
    return this.options.epochs;
  }

  get hasValidation(): boolean {
    return this.#evaluation !== undefined;
  }

  get stepsPerEpoch(): number | undefined {
    const { length } = this.options.data as { readonly length?: number };
    const isKnown = typeof length === "number" && typeof this.options.data !== "function";
    return isKnown ? Math.ceil(length / (this.options.accumulate ?? 1)) : undefined;
  }

  get samples(): number {
    return this.totals.samples;
  }

  get loss(): number {
    return this.totals.last;
  }

  get lr(): number {
    return this.optimizer.groups[0]?.lr ?? Number.NaN;
  }

  get logs(): { loss: number; [name: string]: number } {
    return { ...this.totals.means(), ...this.#validated };
  }

  async saved(folder: string): Promise<void> {
    this.checkpoint = folder;
    await this.hooks.call("onSave");
  }

  contents(): Promise<CheckpointContents> {
    return contentsOf(this);
  }

  async run(): Promise<History> {
    const errors: unknown[] = [];
    try {
      let skipped = await resumeRun(this);
      await this.hooks.call("onTrainBegin");
      const cure = "To go on, set control.stop to false in onTrainBegin.";
      if (this.stop) this.#warn(`a callback has ended this run at step ${this.step}: nothing is trained. ${cure}`);
      while (this.epoch < this.epochs && !this.#isStopping) {
        if (!this.model.training) this.model.train();
        await this.#swap("train");
        setEpoch(this.options.data, this.epoch);
        if (this.batches === 0) this.totals.reset();
        await this.hooks.call("onEpochBegin");
        // A check runs the step eagerly: it should cost little where epochs are short.
        if (this.step - this.#checked >= STEPS_OF_A_CHECK) {
          this.#checked = this.step;
          this.#step.checkNext();
        }
        const isWhole = await this.#trainEpoch(skipped);
        skipped = 0;
        if (isWhole) await this.#endEpoch();
      }
    } catch (error) {
      this.error = error;
      errors.push(error);
    }
    for (const made of [this.#step, this.#evaluation, this.#replica]) made?.dispose();
    errors.push(...(await this.hooks.end()));
    if (errors.length > 0) throw errors[0];
    return this.history;
  }

  get #isFirstRank(): boolean {
    return (this.communicator?.rank ?? 0) === 0;
  }

  get #isInterrupted(): boolean {
    return this.hooks.isLeft || this.options.signal?.aborted === true;
  }

  get #isStopping(): boolean {
    return this.stop || (this.#agreed ?? this.#isInterrupted);
  }

  /** All ranks end after the step in which one of them is to end. */
  async #agree(): Promise<void> {
    const ranks = this.communicator!;
    this.#agreed = await ranks.any(this.stop || this.#isInterrupted);
    if (this.#agreed) this.stop = await ranks.any(this.stop);
  }

  /** Returns false if it was stopped before the end. */
  async #trainEpoch(skipped: number): Promise<boolean> {
    const { totals } = this;
    const { data, accumulate = 1 } = this.options;
    const reads = new Reads();
    const begun = performance.now() - 1000 * this.seconds;
    let waiting = 0; // batches whose gradients wait for the update
    let seen = 0;
    let mean = 0;
    let isStopped = false;
    const endStep = () => {
      waiting = 0;
      this.seconds = (performance.now() - begun) / 1000;
      return this.#endStep();
    };
    for await (const batch of this.isEpochDone ? [] : batchesOf(WHERE, data)) {
      if (seen++ < skipped) continue;
      if (waiting === 0) {
        if (isStopped) {
          await reads.drain();
          return false;
        }
        const begin = this.hooks.call("onStepBegin");
        if (begin) await begin;
      }
      const number = ++waiting;
      const isLast = number === accumulate;
      const samples = samplesOf(batch);
      const result = isLast ? this.#step.whole(batch) : this.#step.backward(batch);
      totals.samples += samples;
      this.batches++;
      const read = reads.push(result instanceof Promise ? await result : result, (values) => {
        totals.add(values, samples);
        mean = number === 1 ? totals.last : mean + (totals.last - mean) / number;
        if (isLast) this.#noteLoss(mean);
      });
      if (read) await read;
      const end = isLast ? endStep() : undefined;
      if (end) await end;
      const rest = this.#pause();
      if (rest) await rest;
      if (isLast && this.#isStopping) {
        isStopped = true;
        this.loader = loaderStateOf(data);
      }
    }
    this.loader = undefined;
    this.isEpochDone = true;
    const problem = () => `the data must have batches in each epoch, got none in epoch ${this.epoch + 1}.`;
    checkBatches(WHERE, this.batches > 0, problem);
    await reads.drain();
    if (waiting > 0) {
      await this.#step.update();
      this.#noteLoss(mean);
      await endStep();
    }
    return true;
  }

  #endStep(): Promise<void> | undefined {
    const { schedule, scheduleEvery = "step" } = this.options;
    if (schedule && scheduleEvery === "step" && !this.#isPlateau) schedule.step();
    this.step++;
    this.epochStep++;
    return this.hooks.call("onStepEnd");
  }

  #noteLoss(loss: number): void {
    this.history.losses.push(Math.fround(loss)); // as a checkpoint keeps it
    if (this.#hasWarned || !Number.isNaN(loss)) return;
    this.#hasWarned = true;
    const cure = "Lower the learning rate, clip gradients, or find the op with detectAnomaly of @opt/core.";
    this.#warn(`the loss should be a number, got NaN in step ${this.history.losses.length}. ${cure}`);
  }

  #warn(problem: string): void {
    if (this.#isFirstRank) console.warn(`[${WHERE}] ${problem}`);
  }

  async #endEpoch(): Promise<void> {
    const { totals, history } = this;
    const { ema, schedule, scheduleEvery } = this.options;
    const means = totals.means(await totals.overRanks(this.communicator));
    if (this.#evaluation !== undefined) {
      await this.#swap("eval");
      const measure = () => this.#evaluation!.run();
      const measured = await (ema ? ema.averaged(measure) : measure());
      await this.#swap("train");
      this.#validated = Object.fromEntries(Object.entries(measured).map(([name, value]) => [`val_${name}`, value]));
      await this.hooks.call("onEvaluate");
    }
    if (schedule && this.#isPlateau) schedule.step(this.#validated.val_loss ?? means.loss);
    else if (schedule && scheduleEvery === "epoch") schedule.step();
    history.epochs.push({ ...means, ...this.#validated, lr: this.lr, seconds: this.seconds });
    this.epoch++;
    Object.assign(this, { epochStep: 0, batches: 0, seconds: 0, isEpochDone: false });
    await this.hooks.call("onEpochEnd");
  }

  /** Optimizers that keep other weights for evaluation (schedule-free) have `train` and `eval`. */
  async #swap(mode: "train" | "eval"): Promise<void> {
    const optimizer: { train?(): unknown; eval?(): unknown } = this.optimizer as object;
    try {
      await optimizer[mode]?.();
    } catch (error) {
      if ((error as { code?: string }).code !== "UNSUPPORTED") throw error; // a divided one has them for some algorithms only
    }
  }
}

/** A sampler of ranks has another order in each epoch. */
function setEpoch(data: unknown, epoch: number): void {
  (data as { sampler?: { setEpoch?(epoch: number): void } } | undefined)?.sampler?.setEpoch?.(epoch);
}
