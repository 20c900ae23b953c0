/** The loop of `fit`: epochs, batches, optimizer steps, validation. */
import type { Tensor } from "@opt/core";
import type { Module } from "@opt/nn";
import { modesOf } from "../modes";
import { Agreement } from "./agreement";
import { Checks } from "./checks";
import { type Evaluation, evaluation } from "./evaluate";
import {
  type Callback,
  type FitControl,
  type FitState,
  fitEvents,
  type History,
  type HookName,
  hookOf,
} from "./events";
import { Hooks } from "./hooks";
import { batchesOf, checkBatches, forwardOf, heldBatches, IDLE, isShareEven, shareOf, together } from "./inputs";
import { isDivided as hasParts, placed } from "./model";
import { type FitOptions, WHERE } from "./options";
import type { FitCommunicator, ParallelModel, Replica } from "./parts";
import { pauses } from "./pause";
import { Proof } from "./proof";
import { loaderStateOf, resumeRun } from "./resume";
import { type Ranks, type TrainingStep, trainingStep } from "./step";
import { samplesOf } from "./totals";
import { TrainState } from "./train-state";

export class Loop<Batch> implements FitControl {
  readonly state: TrainState<Batch>;
  readonly hooks: Hooks;
  readonly #step: TrainingStep<Batch>;
  readonly #evaluation: Evaluation | undefined;
  /** Made here, of a model that is not one. */
  readonly #replica: Replica | undefined;
  /** Ranks whose data may be over at other times. */
  readonly #together: FitCommunicator | undefined;
  readonly #isPlateau: boolean;
  readonly #pause = pauses();
  /** Puts the layers' modes back as they were when an epoch began. */
  #restoreModes: (() => void) | undefined;
  /** On several ranks. */
  readonly #agreement: Agreement | undefined;
  /** The same, where each rank has the whole model: it goes through a step whose forward failed. */
  readonly #hold: ((error: unknown) => void) | undefined;
  /** On several ranks: that one of them was interrupted. */
  #agreed: boolean | undefined;
  #hasWarned = false;
  readonly #checks = new Checks();
  #isChecked = false;
  readonly #proof: Proof | undefined;

  constructor(model: Module | ParallelModel, given: FitOptions<Batch>, callbacks: readonly Callback[]) {
    const own = placed(WHERE, model, given.communicator);
    const { module, parallel, communicator, placing } = own;
    const { validation, metrics, compile, schedule } = given;
    const options = { ...given, data: shareOf(given.data, given.communicator, true) };
    this.state = new TrainState(own, options, callbacks);
    const forward = forwardOf(WHERE, own, given);
    if (parallel === undefined) this.#replica = communicator?.replicate(module);
    const replica = parallel ?? this.#replica;
    const isDivided = communicator !== undefined && communicator.size > 1 && replica !== undefined;
    const areAlike = given.communicator !== undefined && isShareEven(given.data);
    const areMany = placing !== undefined && placing.communicator.size > 1;
    this.#agreement = areMany ? new Agreement(placing.communicator) : undefined;
    this.#hold = hasParts(own) ? undefined : this.#agreement?.hold;
    const ranks: Ranks | undefined = isDivided ? { replica, communicator, areAlike, hold: this.#hold } : undefined;
    this.#together = areAlike || !isDivided ? undefined : communicator;
    this.#step = trainingStep({ model: own, ranks, forward, options });
    if (validation !== undefined) {
      const measuring = { data: shareOf(validation, given.communicator, false), metrics, compile };
      this.#evaluation = evaluation(own, forward, measuring, validation);
    }
    const { kind } = (schedule?.stateDict() ?? {}) as { kind?: string };
    this.#isPlateau = kind === "ReduceLROnPlateau";
    const ours = callbacks.filter(({ firstRankOnly }) => !firstRankOnly || this.#isFirstRank);
    // A checkpoint has what the other callbacks have done.
    const [others, saving] = [ours.filter(({ saves }) => !saves), ours.filter(({ saves }) => saves)];
    this.#proof = Proof.of(callbacks);
    if (this.#proof) saving.push(this.#proof.callback);
    this.hooks = new Hooks(this.#agreement ? this.#agreeing(others, saving) : [...others, ...saving], this.state, this);
  }

  get stop(): boolean {
    return this.state.stop;
  }

  set stop(stop: boolean) {
    this.state.stop = stop;
  }

  async saved(folder: string): Promise<void> {
    this.state.checkpoint = folder;
    await this.hooks.call("onSave");
  }

  async run(): Promise<History> {
    const { state } = this;
    const errors: unknown[] = [];
    try {
      let skipped = await this.#resume();
      state.optimizer.zeroGrad(); // what another run or a failed step has left is no part of this one
      await this.hooks.call("onTrainBegin");
      const cure = "To go on, set control.stop to false in onTrainBegin.";
      if (state.stop) this.#warn(`a callback has ended this run at step ${state.step}: nothing is trained. ${cure}`);
      while (state.epoch < state.epochs && !this.#isStopping) {
        this.#beginTraining();
        await this.#swap("train");
        setEpoch(state.options.data, state.epoch);
        if (state.batches === 0) state.beginEpoch();
        await this.hooks.call("onEpochBegin");
        this.#isChecked = this.#checks.isDue(state.step, state.epoch === state.epochs - 1);
        if (this.#isChecked) this.#step.checkNext();
        const isWhole = await this.#trainEpoch(skipped);
        skipped = 0;
        if (isWhole) await this.#endEpoch();
      }
    } catch (error) {
      state.error = this.#agreement ? this.#agreement.cause(error) : error;
      errors.push(state.error);
    }
    if (state.isInStep) state.optimizer.zeroGrad();
    for (const made of [this.#step, this.#evaluation, this.#replica]) made?.dispose();
    errors.push(...(await this.hooks.end()));
    if (errors.length > 0) throw errors[0];
    return state.history;
  }

  async #resume(): Promise<number> {
    try {
      if (this.state.callbacks.some(({ saves }) => saves?.trainable)) await this.state.base.begin();
      return await resumeRun(this.state);
    } catch (error) {
      if (!this.#agreement) throw error;
      this.#agreement.hold(error); // all ranks meet before they train
      return 0;
    }
  }

  /** A callback may have left the model in evaluation mode: each layer gets its own mode of the last epoch. */
  #beginTraining(): void {
    const { model } = this.state;
    if (!model.training) (this.#restoreModes ?? (() => model.train()))();
    this.#restoreModes = modesOf(model);
  }

  get #isFirstRank(): boolean {
    return (this.state.communicator?.rank ?? 0) === 0;
  }

  get #isInterrupted(): boolean {
    const { options, step } = this.state;
    return this.hooks.isLeft || options.signal?.aborted === true || this.#proof?.isOver(step) === true;
  }

  get #isStopping(): boolean {
    return this.state.stop || (this.#agreed ?? this.#isInterrupted);
  }

  /** Errors of callbacks wait until all ranks meet: before they save, and before they train. */
  #agreeing(others: readonly Callback[], saving: readonly Callback[]): Callback[] {
    const { hold } = this.#agreement!;
    const agree = () => this.#agree();
    const meeting = { onStepEnd: agree, onEpochEnd: agree };
    const held = others.map((each) => holding(each, fitEvents.map(hookOf), hold));
    const alike = saving.map((each) => holding(each, ["onTrainBegin"], hold));
    return [...held, meeting, ...alike, { onTrainBegin: agree }];
  }

  /** All ranks end after the step in which one of them is to end. */
  async #agree(): Promise<void> {
    const { state } = this;
    const { isOver, stop } = await this.#agreement!.meet(state.stop || this.#isInterrupted, state.stop);
    this.#agreed = isOver;
    state.stop = stop;
  }

  /** Returns false if it was stopped before the end. */
  async #trainEpoch(skipped: number): Promise<boolean> {
    const { state } = this;
    const { totals, reads } = state;
    const { data, accumulate = 1 } = state.options;
    const begun = performance.now() - 1000 * state.seconds;
    let waiting = 0; // batches whose gradients wait for the update
    let seen = 0;
    let mean = 0; // of the step's losses
    let weight = 0;
    let isStopped = false;
    const endStep = () => {
      waiting = 0;
      state.seconds = (performance.now() - begun) / 1000;
      return this.#endStep();
    };
    for await (const batch of this.#batches(skipped)) {
      if (seen++ < skipped) continue;
      if (waiting === 0) {
        if (isStopped) {
          await reads.drain();
          return false;
        }
        state.isInStep = true;
        const begin = this.hooks.call("onStepBegin");
        if (begin) await begin;
      }
      const number = ++waiting;
      const isLast = number === accumulate;
      if (batch === IDLE) {
        await reads.drain();
        if (number === 1) {
          weight = 0;
          mean = totals.last; // no batch of the step is this rank's
        }
        await this.#step.idle(isLast);
        state.batches++; // as on the others: a resumed run skips as many
        if (isLast) this.#noteLoss(mean);
      } else {
        this.#proof?.saw(batch);
        const samples = samplesOf(batch);
        const result = this.#isChecked ? this.#check(batch, samples, isLast) : this.#run(batch, samples, isLast);
        totals.samples += samples;
        state.batches++;
        const values = result instanceof Promise ? await result : result;
        const read =
          values &&
          reads.push(values, (values) => {
            const added = totals.add(values, samples, this.#step.isCounted);
            if (number === 1) weight = mean = 0;
            weight += added;
            mean = number === 1 ? totals.last : mean + ((totals.last - mean) * added) / (weight || 1);
            if (isLast) this.#noteLoss(mean);
          });
        if (read) await read;
      }
      const end = isLast ? endStep() : undefined;
      if (end) await end;
      const rest = this.#pause();
      if (rest) await rest;
      if (isLast && this.#isStopping) {
        isStopped = true;
        state.loader = loaderStateOf(data);
      }
    }
    state.loader = undefined;
    state.isEpochDone = true;
    const problem = () => `the data must have batches in each epoch, got none in epoch ${state.epoch + 1}.`;
    checkBatches(WHERE, state.batches > 0, problem);
    await reads.drain();
    if (waiting > 0) {
      await this.#step.update();
      this.#noteLoss(mean);
      await endStep();
    }
    return true;
  }

  /** Of this epoch. */
  #batches(skipped: number): Iterable<Batch> | AsyncIterable<Batch | typeof IDLE> {
    const { state } = this;
    if (state.isEpochDone) return [];
    const given = batchesOf(WHERE, state.options.data);
    const batches = this.#hold ? heldBatches(given, this.#hold) : given;
    return this.#together === undefined
      ? (batches as Iterable<Batch>)
      : together(batches, this.#together, { where: WHERE, skipped });
  }

  /** Nothing where it failed, and the rank goes on until all ranks meet. */
  #run(batch: Batch, samples: number, isLast: boolean): Tensor | undefined | Promise<Tensor | undefined> {
    return isLast ? this.#step.whole(batch, samples) : this.#step.backward(batch, samples);
  }

  async #check(batch: Batch, samples: number, isLast: boolean): Promise<Tensor | undefined> {
    const begun = performance.now();
    const result = await this.#run(batch, samples, isLast);
    this.#checks.took(performance.now() - begun);
    this.#isChecked = !isLast;
    return result;
  }

  #endStep(): Promise<void> | undefined {
    const { state } = this;
    const { schedule, scheduleEvery = "step" } = state.options;
    state.isInStep = false;
    state.wasSkipped = this.#step.wasSkipped;
    if (state.wasSkipped) state.skippedSteps++;
    else if (schedule && scheduleEvery === "step" && !this.#isPlateau) schedule.step();
    state.step++;
    state.epochStep++;
    return this.hooks.call("onStepEnd");
  }

  #noteLoss(loss: number): void {
    const { losses } = this.state.history;
    losses.push(Math.fround(loss)); // as a checkpoint keeps it
    if (this.#hasWarned || !Number.isNaN(loss)) return;
    this.#hasWarned = true;
    const cure = "Lower the learning rate, clip gradients, or find the op with detectAnomaly of @opt/core.";
    this.#warn(`the loss should be a number, got NaN in step ${losses.length}. ${cure}`);
  }

  #warn(problem: string): void {
    if (this.#isFirstRank) console.warn(`[${WHERE}] ${problem}`);
  }

  async #endEpoch(): Promise<void> {
    const { state } = this;
    const { ema, schedule, scheduleEvery } = state.options;
    const means = state.totals.means(await state.totals.overRanks(WHERE, state.communicator));
    if (this.#evaluation !== undefined) {
      await this.#swap("eval");
      const measure = () => this.#evaluation!.run();
      const measured = await (ema ? ema.averaged(measure) : measure()).finally(() => this.#swap("train"));
      state.validated = Object.fromEntries(Object.entries(measured).map(([name, value]) => [`val_${name}`, value]));
      await this.hooks.call("onEvaluate");
    }
    const metric = state.validated.val_loss ?? means.loss;
    if (schedule && this.#isPlateau) schedule.step(metric);
    else {
      schedule?.observe?.(metric);
      if (scheduleEvery === "epoch") schedule?.step();
    }
    state.history.epochs.push({ ...means, ...state.validated, lr: state.lr, seconds: state.seconds });
    state.nextEpoch();
    await this.hooks.call("onEpochEnd");
  }

  /** Optimizers that keep other weights for evaluation (schedule-free) have `train` and `eval`. */
  async #swap(mode: "train" | "eval"): Promise<void> {
    const optimizer: { train?(): unknown; eval?(): unknown } = this.state.optimizer as object;
    try {
      await optimizer[mode]?.();
    } catch (error) {
      if ((error as { code?: string }).code !== "UNSUPPORTED") throw error; // a divided one has them for some algorithms only
    }
  }
}

/** A callback's hooks, of which these keep their errors. */
function holding(callback: Callback, names: readonly HookName[], hold: (error: unknown) => void): Callback {
  const hooks = fitEvents.map(hookOf).filter((name) => callback[name]);
  const made = hooks.map((name) => {
    const call = async (state: FitState, control: FitControl) => callback[name]!(state, control);
    const isHeld = names.includes(name) && name !== "onTrainEnd";
    return [name, isHeld ? (...at: Parameters<typeof call>) => call(...at).catch(hold) : call];
  });
  return Object.fromEntries(made);
}

/** A sampler of ranks has another order in each epoch. */
function setEpoch(data: unknown, epoch: number): void {
  (data as { sampler?: { setEpoch?(epoch: number): void } } | undefined)?.sampler?.setEpoch?.(epoch);
}
