/** One optimizer step, as a loop written by hand takes it: forward and backward for each batch, then the update. */
import { type Compiled, clipGradNorm, clipGradValue, compile, type Tensor, tidy } from "@opt/core";
import { answersAtOnce } from "../metrics/reads";
import type { Computed } from "./inputs";
import type { PlacedModel } from "./model";
import { type FitOptions, WHERE } from "./options";
import type { FitCommunicator, FitOptimizer, Replica } from "./parts";
import { Readings } from "./readings";
import { nonZero, Window } from "./window";

interface Parts<Batch> {
  readonly model: PlacedModel;
  /** On several ranks. */
  readonly ranks: Ranks | undefined;
  readonly forward: (batch: Batch) => Computed;
  readonly options: FitOptions<Batch>;
}

/** Where gradients of several ranks meet. */
export interface Ranks {
  readonly replica: Replica;
  readonly communicator: FitCommunicator;
  /** All ranks have batches of the same sizes. */
  readonly areAlike: boolean;
  /** Keeps an error of this rank until the step ends on all. Undefined where ranks need each other within a forward. */
  readonly hold: ((error: unknown) => void) | undefined;
}

/** Results are what `Readings` reads of a batch, undefined where an error is held. */
export interface TrainingStep<Batch> {
  /** Forward and backward of a batch of so many samples; its gradients wait for those of others. */
  backward(batch: Batch, samples: number): Tensor | undefined;
  /** Forward and backward of a step's last batch, and the update. */
  whole(batch: Batch, samples: number): Tensor | Promise<Tensor | undefined>;
  /** Takes part in what other ranks do with a batch. */
  idle(isLast: boolean): Promise<void>;
  /** The update alone, with the gradients that are there. */
  update(): void | Promise<void>;
  /** Losses are sums with their counts. */
  readonly isCounted: boolean;
  /** Whether the scaler skipped the last update. */
  readonly wasSkipped: boolean;
  /** Has the next step compared with the compiled one. */
  checkNext(): void;
  dispose(): void;
}

export function trainingStep<Batch>({ model, ranks, forward, options }: Parts<Batch>): TrainingStep<Batch> {
  const { optimizer, scaler, ema, clip, accumulate = 1, metrics = [], compile: isCompiled = true } = options;
  const { module, weights, parallel } = model;
  const parameters = () => weights.namedParameters().map(([, parameter]) => parameter);
  const trained = optimizer.groups.flatMap(({ params }) => params);
  /** Those that the optimizer trains, in the model's order. A divided one trains parts: all, then. */
  const isTrained = new Set(trained);
  const stepped = () => (isSharded(optimizer) ? parameters() : parameters().filter((each) => isTrained.has(each)));
  const readings = new Readings(metrics);
  const window = new Window(trained[0] ?? module.parameters()[0]!);
  const isCut = accumulate > 1 || ranks !== undefined;
  const isWeighed = accumulate > 1 || (ranks !== undefined && !ranks.areAlike);
  /** Whether the first batch, which runs eagerly, left row-sparse gradients: no compiled function leaves them to the next one. */
  let isSparse: boolean | undefined;
  const made: Pick<Compiled<never, unknown>, "checkNext" | "dispose">[] = [];
  const wrap = <Args extends unknown[], Result extends Tensor | undefined>(f: (...args: Args) => Result) => {
    const eager = (...args: Args) => tidy(() => f(...args)?.detach()) as Result;
    if (!isCompiled) return eager;
    const compiled = compile(f);
    made.push(compiled);
    return isCut ? (...args: Args) => (isSparse === false ? compiled : eager)(...args) : compiled;
  };
  /** Whose gradients there are. */
  const withGradients = () =>
    new Set([...module.parameters(), ...parameters(), ...(isSharded(optimizer) ? [] : trained)]);
  /** The same once ranks have exchanged them: those of a model in parts are parts. */
  const withExchanged = () => new Set([...parameters(), ...(isSharded(optimizer) ? [] : trained)]);

  /** The loss as its part of the step's. */
  const partOf = ({ loss, count }: Computed): Tensor => {
    if (count === undefined) return isWeighed ? window.weighed(loss) : loss;
    if (!isCut) return loss.div(nonZero(count.detach()));
    if (ranks) ranks.replica.divisor = 1; // before gradients leave in the first backward
    window.count(count);
    return loss;
  };
  const backward = (batch: Batch) => {
    const computed = forward(batch);
    const read = readings.of(computed);
    const part = partOf(computed);
    (scaler ? scaler.scale(part) : part).backward();
    if (isCut) isSparse ??= [...withGradients()].some(({ grad }) => grad?.sparse);
    warnWithoutGradients(ranks === undefined && !isSharded(optimizer) ? trained : [...withGradients()]);
    return read;
  };

  const beforeStep = () => {
    const isCounted = readings.isCounted === true;
    if (isCut && (isCounted || ranks === undefined)) window.divide(withExchanged(), isCounted);
    window.clear(isCut && isCounted);
    if (clip && scaler) scaler.unscale(optimizer as never);
    if (clip?.norm !== undefined) clipGradNorm(stepped(), clip.norm);
    if (clip?.value !== undefined) clipGradValue(stepped(), clip.value);
  };
  const afterStep = () => {
    optimizer.zeroGrad();
    // Gradients that nobody steps with would grow.
    if (!isSharded(optimizer))
      for (const each of parameters()) if (!isTrained.has(each) && each.grad !== null) each.grad = null;
    if (!scaler) ema?.update();
  };
  /** A promise where the scaler's device answers later, and with a divided optimizer. */
  const stepOnce = () => {
    beforeStep();
    const stepped = scaler ? after(scaler.step(optimizer as never), () => scaler.update()) : optimizer.step();
    return after(stepped, afterStep);
  };

  const waits = isSharded(optimizer) || (scaler !== undefined && !answersAtOnce(module.parameters()[0]!));
  const ofBatch = wrap(backward);
  const alone = (batch: Batch) => {
    try {
      return parallel?.recorded?.(() => ofBatch(batch)) ?? ofBatch(batch);
    } catch (error) {
      if (!ranks?.hold) throw error;
      ranks.hold(error);
      return undefined;
    }
  };
  const step = waits ? stepOnce : wrap(() => void stepOnce());
  const inOne = wrap((batch: Batch) => {
    const read = backward(batch);
    void stepOnce();
    return read;
  });
  const average = ema && scaler ? wrap(() => void ema.update()) : undefined;
  /** A skipped step moves no average. */
  const ended = () => {
    window.next();
    if (average && !scaler!.stepWasSkipped) average();
  };
  const update = () => after(step(), ended);

  /** Says what the sum over ranks is divided by. */
  const weigh = async ({ replica, communicator, areAlike }: Ranks, isLastToCome: boolean) => {
    if (readings.isCounted) replica.divisor = 1;
    else if (areAlike) replica.divisor = window.evenly(communicator);
    else replica.divisor = await window.agree(communicator, withGradients(), isLastToCome);
  };
  const exchange = async ({ replica, communicator }: Ranks) => {
    await replica.sync();
    if (readings.isCounted) await window.countAll(communicator);
  };
  return {
    backward(batch, samples) {
      window.take(samples);
      return ranks ? ranks.replica.noSync(() => alone(batch)) : alone(batch);
    },
    whole(batch, samples) {
      if (isWeighed || ranks) window.take(samples);
      if (!ranks && !waits) {
        const read = inOne(batch);
        ended();
        return read;
      }
      return (async () => {
        if (ranks) await weigh(ranks, true);
        const read = alone(batch);
        if (ranks) await exchange(ranks);
        await update();
        return read;
      })();
    },
    async idle(isLast) {
      window.take(0);
      if (isLast) await weigh(ranks!, true);
      if (isLast) parallel?.shadow?.();
      else ranks!.replica.noSync(() => parallel?.shadow?.());
      if (!isLast) return;
      await exchange(ranks!);
      await update();
    },
    async update() {
      if (ranks) await weigh(ranks, false);
      if (ranks) await exchange(ranks);
      await update();
    },
    get isCounted() {
      return readings.isCounted === true;
    },
    get wasSkipped() {
      return scaler?.stepWasSkipped ?? false;
    },
    checkNext() {
      for (const each of made) each.checkNext();
    },
    dispose() {
      for (const each of made) each.dispose();
      window.dispose();
      if (ranks) ranks.replica.divisor = ranks.communicator.size;
    },
  };
}

const after = (before: void | Promise<void>, next: () => void | Promise<void>) => (before ? before.then(next) : next());

/** A divided one: its state is on all ranks. */
export const isSharded = (optimizer: FitOptimizer) => "contents" in optimizer;

let hasWarned = false;

/** Runs where a step is traced, not in each one. */
function warnWithoutGradients(trained: readonly Tensor[]): void {
  if (hasWarned || trained.some(({ grad }) => grad !== null)) return;
  hasWarned = true;
  const cure = "Compute the loss from model.forward() without noGrad or detach, and make the optimizer of this model.";
  console.warn(`[${WHERE}] a step should leave gradients, got none. ${cure}`);
}
