import { checkValue } from "../errors/check-value";
import {
  checkMetric,
  finiteNumber,
  givenOptions,
  isFiniteNumber,
  oneOf,
  perGroup,
  trueOrFalse,
  wholeNumber,
} from "./scheduler/check";
import type { ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";
import { LRScheduler } from "./scheduler/scheduler";
import { checkState, type SchedulerState, savedInteger } from "./scheduler/state";

export interface ReduceLROnPlateauOptions extends ScheduleOptions {
  /** Whether a lower or a higher metric is better. */
  mode?: "min" | "max";
  factor?: number;
  /** Epochs without improvement that are put up with. */
  patience?: number;
  /** By how much a metric must be better to count, as a part of the best or absolutely. */
  threshold?: number;
  thresholdMode?: "rel" | "abs";
  /** Epochs after a reduction in which bad ones do not count. */
  cooldown?: number;
  /** The lr is not lowered below this, for all groups or for each. */
  minLr?: number | readonly number[];
  /** A reduction by no more than this is left out. */
  eps?: number;
  /** During cooldown a better metric does not become the best either, as in PaddlePaddle. */
  ignoreMetricsInCooldown?: boolean;
}

const NAMES = [
  "option",
  "mode",
  "factor",
  "patience",
  "threshold",
  "thresholdMode",
  "cooldown",
  "minLr",
  "eps",
  "ignoreMetricsInCooldown",
] as const;

/**
 * Lowers the lr when a metric has stopped improving. Call `step(metric)` after each validation.
 * With a warm-up before it, see `SequentialLR`.
 *
 * after more than `patience` bad epochs in a row: lr = max(lr * factor, minLr), if that changes lr by more than eps
 *
 * @throws OptError BAD_ARGUMENT for options out of range or a step without a metric; a NaN metric counts as bad
 * @see torch.optim.lr_scheduler.ReduceLROnPlateau; paddle.optimizer.lr.ReduceOnPlateau
 * @example
 * const schedule = new ReduceLROnPlateau(optimizer, { patience: 5 });
 * schedule.step(0.25); // the loss on held-out data
 */
export class ReduceLROnPlateau extends LRScheduler {
  readonly #options: Required<Omit<ReduceLROnPlateauOptions, "option">>;
  readonly #minLrs: readonly number[];
  /** null until a metric was better than nothing. */
  #best: number | null = null;
  #badEpochs = 0;
  #cooldownLeft = 0;

  constructor(optimizer: ScheduledOptimizer, options: ReduceLROnPlateauOptions = {}) {
    const where = "ReduceLROnPlateau";
    super(where, optimizer, options);
    const {
      mode = "min",
      factor = 0.1,
      patience = 10,
      threshold = 1e-4,
      thresholdMode = "rel",
      cooldown = 0,
    } = givenOptions(where, options, NAMES);
    const { minLr = 0, eps = 1e-8, ignoreMetricsInCooldown = false } = options;
    const fits = isFiniteNumber(factor) && factor >= 0 && factor < 1;
    checkValue(fits, where, "factor", "at least 0 and below 1", factor, "Use for example 0.1.");
    this.#options = {
      mode: oneOf(where, "mode", mode, ["min", "max"]),
      factor,
      patience: wholeNumber(where, "patience", patience, 0),
      threshold: finiteNumber(where, "threshold", threshold, 0),
      thresholdMode: oneOf(where, "thresholdMode", thresholdMode, ["rel", "abs"]),
      cooldown: wholeNumber(where, "cooldown", cooldown, 0),
      minLr,
      eps: finiteNumber(where, "eps", eps, 0),
      ignoreMetricsInCooldown: trueOrFalse(where, "ignoreMetricsInCooldown", ignoreMetricsInCooldown),
    };
    this.#minLrs = perGroup<number>(where, "minLr", minLr, optimizer, (name, one) => finiteNumber(where, name, one, 0));
  }

  override step(metric?: number): void {
    checkMetric(this.kind, metric);
    const { patience, cooldown, ignoreMetricsInCooldown } = this.#options;
    const coolingDown = this.#cooldownLeft > 0;
    const better = !(coolingDown && ignoreMetricsInCooldown) && this.#isBetter(metric);
    const badEpochs = better || coolingDown ? 0 : this.#badEpochs + 1;
    const reduce = badEpochs > patience;
    if (reduce) this.#reduce();

    if (better) this.#best = metric;
    if (coolingDown) this.#cooldownLeft -= 1;
    if (reduce) this.#cooldownLeft = cooldown;
    this.#badEpochs = reduce ? 0 : badEpochs;
    this.record(this.lastEpoch + 1);
  }

  override observe(metric: number): void {
    this.step(metric);
  }

  /** Sets the base lr: how a schedule takes over from another. @internal */
  restart(): void {
    this.moveTo(0, (index) => this.base(index));
  }

  #isBetter(metric: number): boolean {
    const { mode, threshold, thresholdMode } = this.#options;
    const best = this.#best ?? (mode === "min" ? Infinity : -Infinity);
    if (mode === "min") return metric < (thresholdMode === "rel" ? best * (1 - threshold) : best - threshold);
    return metric > (thresholdMode === "rel" ? best * (1 + threshold) : best + threshold);
  }

  #reduce(): void {
    const { factor, minLr, eps } = this.#options;
    this.moveTo(this.lastEpoch, (index) => {
      const lr = this.present(index);
      const min = typeof minLr === "number" ? minLr : this.forGroup(this.#minLrs, index, "minLr");
      const reduced = Math.max(lr * factor, min);
      return lr - reduced > eps ? reduced : lr;
    });
  }

  override snapshot(): () => void {
    const restore = super.snapshot();
    const [best, badEpochs, cooldownLeft] = [this.#best, this.#badEpochs, this.#cooldownLeft];
    return () => {
      restore();
      this.#best = best;
      this.#badEpochs = badEpochs;
      this.#cooldownLeft = cooldownLeft;
    };
  }

  override stateDict(): SchedulerState {
    const progress = { best: this.#best, badEpochs: this.#badEpochs, cooldownLeft: this.#cooldownLeft };
    return { ...super.stateDict(), ...progress };
  }

  override prepareLoad(state: unknown): () => void {
    const load = super.prepareLoad(state);
    const saved = state as SchedulerState;
    const best = saved.best;
    const problem = () => `best must be a number or null, got ${String(best)}.`;
    checkState(best === null || typeof best === "number", this.kind, problem);
    const badEpochs = savedInteger(this.kind, saved, "badEpochs", 0);
    const cooldownLeft = savedInteger(this.kind, saved, "cooldownLeft", 0);
    return () => {
      load();
      this.#best = best;
      this.#badEpochs = badEpochs;
      this.#cooldownLeft = cooldownLeft;
    };
  }
}
