import { finiteNumber, oneOf, optionsOf, perGroup, wholeFrom } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { PerGroup, ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";
import { type SchedulerState, savedInteger } from "./scheduler/state";

export interface SWALROptions extends ScheduleOptions {
  /** The lr at the end, for all groups or for each. */
  swaLr: PerGroup;
  /** Epochs from the present lr to `swaLr`; 0 goes there at once. */
  annealEpochs?: number;
  annealStrategy?: "cos" | "linear";
}

/**
 * Moves the lr from what it is to `swaLr`, and stays there: for stochastic weight averaging, see `StochasticWeightAverage`.
 *
 * lr(e) = swaLr * a(e) + start * (1 - a(e)), a(e) = (1 - cos(pi * t)) / 2 or t, t = min(1, e / annealEpochs), computed from the lr before it
 *
 * @throws OptError BAD_ARGUMENT for a swaLr that is not finite, annealEpochs below 0 or another strategy
 * @see Izmailov et al. 2018; torch.optim.swa_utils.SWALR
 * @example
 * const schedule = new SWALR(optimizer, { swaLr: 0.05, annealEpochs: 5 });
 */
export class SWALR extends PlannedLR {
  #isAtOnce = false;
  /** Its own steps. First in a `SequentialLR`, a chain of schedules has taken one at epoch 0, as in PyTorch. */
  #steps = 0;

  constructor(optimizer: ScheduledOptimizer, options: SWALROptions) {
    super("SWALR", optimizer, options);
    const swaLr = (where: string, name: string, value: PerGroup) =>
      perGroup<number>(where, name, value, optimizer, (one, lr) => finiteNumber(where, one, lr));
    const annealStrategy = (where: string, name: string, value: "cos" | "linear") =>
      oneOf(where, name, value, ["cos", "linear"]);
    const checks = { swaLr, annealEpochs: wholeFrom(0), annealStrategy };
    const given = optionsOf(this.kind, options, checks, { annealEpochs: 10, annealStrategy: "cos" });
    this.#isAtOnce = given.annealEpochs === 0;
    const weightAt = (step: number) => {
      const t = Math.max(0, Math.min(1, step / Math.max(1, given.annealEpochs)));
      return given.annealStrategy === "cos" ? (1 - Math.cos(Math.PI * t)) / 2 : t;
    };
    this.chain((lr, _, index) => {
      const end = this.forGroup(given.swaLr, index, "swaLr");
      const step = this.#isAtOnce ? Math.max(1, this.#steps) : this.#steps;
      const [before, now] = [weightAt(step - 1), weightAt(step)];
      const start = before === 1 ? end : (lr - before * end) / (1 - before);
      return end * now + start * (1 - now);
    });
  }

  override step(): void {
    this.wholly(() => {
      this.#steps += 1;
      super.step();
    });
  }

  override begin(): void {
    this.#steps = 0;
    super.begin();
    if (this.#isAtOnce) this.restart();
  }

  /** It goes on from the lr that it is handed, as PyTorch's does. @internal */
  override restart(): void {
    this.stepTo(0);
  }

  override snapshot(): () => void {
    const [restore, steps] = [super.snapshot(), this.#steps];
    return () => {
      restore();
      this.#steps = steps;
    };
  }

  override stateDict(): SchedulerState {
    return { ...super.stateDict(), steps: this.#steps };
  }

  override prepareLoad(state: unknown): () => void {
    const load = super.prepareLoad(state);
    const steps = savedInteger(this.kind, state as SchedulerState, "steps", 0);
    return () => {
      load();
      this.#steps = steps;
    };
  }
}
