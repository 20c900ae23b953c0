import { checkValue, finiteNumber, givenOptions, isFiniteNumber, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface LinearLROptions {
  startFactor?: number;
  endFactor?: number;
  /** Epochs from the first factor to the last. */
  totalIters?: number;
}

/**
 * Moves the lr in equal steps from one fraction of itself to another: the usual warm-up.
 *
 * lr(e) = base * (startFactor + (endFactor - startFactor) * min(e, totalIters) / totalIters)
 *
 * @throws BAD_ARGUMENT for a startFactor outside (0, 1], an endFactor outside [0, 1] or totalIters below 1
 * @see torch.optim.lr_scheduler.LinearLR
 * @example
 * const schedule = new LinearLR(optimizer, { startFactor: 0.1, totalIters: 10 });
 */
export class LinearLR extends PlannedLR {
  readonly #startFactor: number;
  readonly #rise: number;
  readonly #totalIters: number;

  constructor(optimizer: ScheduledOptimizer, options: LinearLROptions = {}) {
    super("LinearLR", optimizer);
    const names = ["startFactor", "endFactor", "totalIters"] as const;
    const { startFactor = 1 / 3, endFactor = 1, totalIters = 5 } = givenOptions("LinearLR", options, names);
    const fits = isFiniteNumber(startFactor) && startFactor > 0 && startFactor <= 1;
    const advice = "Start from a small factor, not 0.";
    checkValue(fits, "LinearLR", "startFactor", "above 0 and at most 1", startFactor, advice);
    this.#startFactor = startFactor;
    this.#rise = finiteNumber("LinearLR", "endFactor", endFactor, 0, 1) - startFactor;
    this.#totalIters = wholeNumber("LinearLR", "totalIters", totalIters, 1);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    const lr = this.presentLr(index);
    if (epoch === 0) return lr * this.#startFactor;
    if (epoch > this.#totalIters) return lr;
    return lr * (1 + this.#rise / (this.#totalIters * this.#startFactor + (epoch - 1) * this.#rise));
  }

  protected override firstLr(index: number): number {
    return this.presentLr(index) * this.#startFactor;
  }

  protected override restartLr(index: number): number {
    return this.baseLr(index) * this.#startFactor;
  }
}
