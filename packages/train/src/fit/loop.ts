/** The loop of `fit`: epochs, batches, optimizer steps, validation. */
import type { CheckpointContents, Communicator } from "@opt/checkpoint";
import { check } from "@opt/core";
import type { Module } from "@opt/nn";
import { Dispatcher } from "./dispatcher";
import { Evaluation, overRanks } from "./evaluate";
import type { Callback, FitControl, FitState } from "./events";
import type { EpochRecord, History } from "./history";
import { batchesOf, type FitOptions, forwardOf, modelOf, WHERE } from "./options";
import type { ParallelModel } from "./parts";
import { pauses } from "./pause";
import { Reads } from "./reads";
import { resumeRun, saversLast } from "./resume";
import { contentsOf, loaderStateOf, type RunParts } from "./run-state";
import { type TrainingStep, trainingStep } from "./step";
import { samplesOf, Totals } from "./totals";

const STEPS_OF_A_CHECK = 16;

export class Loop<Batch> implements FitState, FitControl, RunParts<Batch> {
  readonly model: Module;
  readonly communicator: Communicator | undefined;
  epoch = 0;
  step = 0;
  epochStep = 0;
  batches = 0;
  seconds = 0;
  isEpochDone = false;
  readonly history: History = { epochs: [], losses: [] };
  readonly totals: Totals;
  readonly dispatcher: Dispatcher;
  stop = false;
  error: unknown;
  checkpoint: string | undefined;
  readonly #step: TrainingStep<Batch>;
  readonly #evaluation: Evaluation<Batch> | undefined;
  /** Numbers of the last validation, under their names in history. */
  #validated: Record<string, number> = {};
  readonly #isPlateau: boolean;
  readonly #pause = pauses();
  #hasWarned = false;
  /** The step of the last check. */
  #checked = 0;
  /** The loop asks for one more batch after a stop, to see whether the epoch is over. */
  loader: object | null | undefined;

  constructor(
    model: Module | ParallelModel,
    readonly options: FitOptions<Batch>,
    readonly callbacks: readonly Callback[],
  ) {
    const { module, parallel } = modelOf(WHERE, model);
    const { validation, metrics = [], compile } = options;
    this.model = module;
    this.communicator = parallel?.communicator;
    this.totals = new Totals(metrics);
    const forward = forwardOf(WHERE, module, options);
    this.#step = trainingStep({ module, parallel, forward, options });
    if (validation !== undefined) {
      const measuring = { data: validation, metrics, compile };
      this.#evaluation = new Evaluation(module, forward, measuring, this.communicator);
    }
    const { kind } = (options.schedule?.stateDict() ?? {}) as { kind?: string };
    this.#isPlateau = kind === "ReduceLROnPlateau";
    this.dispatcher = new Dispatcher(saversLast(callbacks), this, this);
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
    await this.dispatcher.emit("save");
  }

  contents(): Promise<CheckpointContents> {
    return contentsOf(this);
  }

  async run(): Promise<History> {
    const { epochs, options } = this;
    const errors: unknown[] = [];
    try {
      let skipped = await resumeRun(this);
      await this.dispatcher.emit("trainBegin");
      if (this.stop) this.#warnOfEnd();
      while (this.epoch < epochs && !this.#isStopping) {
        if (!this.model.training) this.model.train();
        await this.#swap("train");
        setEpoch(options.data, this.epoch);
        if (this.batches === 0) this.totals.reset();
        await this.dispatcher.emit("epochBegin");
        this.#checkNext();
        const isWhole = await this.#trainEpoch(skipped);
        skipped = 0;
        if (isWhole) await this.#endEpoch();
      }
    } catch (error) {
      this.error = error;
      errors.push(error);
    }
    this.#step.dispose();
    this.#evaluation?.dispose();
    errors.push(...(await this.dispatcher.end()));
    if (errors.length > 0) throw errors[0];
    return this.history;
  }

  get #isStopping(): boolean {
    return this.stop || this.dispatcher.isLeft || this.options.signal?.aborted === true;
  }

  /** Returns false if it was stopped before the end. */
  async #trainEpoch(skipped: number): Promise<boolean> {
    const { totals, dispatcher, options } = this;
    const { data, accumulate = 1 } = options;
    const reads = new Reads();
    const begun = performance.now() - 1000 * this.seconds;
    let waiting = 0; // batches whose gradients wait for the update
    let seen = 0;
    let mean = 0;
    let isStopped = false;
    const endStep = async () => {
      waiting = 0;
      this.seconds = (performance.now() - begun) / 1000;
      await this.#endStep();
    };
    for await (const batch of this.isEpochDone ? [] : batchesOf(WHERE, data)) {
      if (seen++ < skipped) continue;
      if (waiting === 0) {
        if (isStopped) {
          await reads.drain();
          return false;
        }
        const begin = dispatcher.emit("stepBegin");
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
      if (isLast) await endStep();
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
    const cure = "Pass a DataLoader, a list, or a function that returns an iterable.";
    check(this.batches > 0, "BAD_ARGUMENT", WHERE, problem, cure);
    await reads.drain();
    if (waiting > 0) {
      await this.#step.update();
      this.#noteLoss(mean);
      await endStep();
    }
    return true;
  }

  async #endStep(): Promise<void> {
    const { dispatcher } = this;
    const { schedule, scheduleEvery = "step" } = this.options;
    if (schedule && scheduleEvery === "step" && !this.#isPlateau) schedule.step();
    this.step++;
    this.epochStep++;
    const end = dispatcher.emit("stepEnd");
    if (end) await end;
  }

  #warnOfEnd(): void {
    if ((this.communicator?.rank ?? 0) > 0) return;
    const cure = "To go on, set control.stop to false in onTrainBegin.";
    console.warn(`[${WHERE}] a callback has ended this run at step ${this.step}: nothing is trained. ${cure}`);
  }

  /** A check runs the step eagerly: it should cost little where epochs are short. */
  #checkNext(): void {
    if (this.step - this.#checked < STEPS_OF_A_CHECK) return;
    this.#checked = this.step;
    this.#step.checkNext();
  }

  #noteLoss(loss: number): void {
    this.history.losses.push(Math.fround(loss)); // as a checkpoint keeps it
    if (this.#hasWarned || !Number.isNaN(loss)) return;
    this.#hasWarned = true;
    const cure = "Lower the learning rate, clip gradients, or find the op with detectAnomaly of @opt/core.";
    console.warn(`[${WHERE}] the loss should be a number, got NaN in step ${this.history.losses.length}. ${cure}`);
  }

  async #endEpoch(): Promise<void> {
    const { totals, history, options, dispatcher } = this;
    const { ema, schedule, scheduleEvery } = options;
    const means = totals.means(await overRanks(totals, this.communicator));
    if (this.#evaluation !== undefined) {
      await this.#swap("eval");
      const measure = () => this.#evaluation!.run();
      const measured = await (ema ? ema.averaged(measure) : measure());
      await this.#swap("train");
      this.#validated = Object.fromEntries(Object.entries(measured).map(([name, value]) => [`val_${name}`, value]));
      await dispatcher.emit("evaluate");
    }
    if (schedule && this.#isPlateau) schedule.step(this.#validated.val_loss ?? means.loss);
    else if (schedule && scheduleEvery === "epoch") schedule.step();
    const record: EpochRecord = { ...means, ...this.#validated, lr: this.lr, seconds: this.seconds };
    history.epochs.push(record);
    this.epoch++;
    Object.assign(this, { epochStep: 0, batches: 0, seconds: 0, isEpochDone: false });
    await dispatcher.emit("epochEnd");
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
