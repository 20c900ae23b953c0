import { finiteNumber, givenOptions, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface ConstantLROptions {
  factor?: number;
  /** Epochs for which the factor holds. */
  totalIters?: number;
}

/**
 * Holds the lr at a fraction of itself for the first epochs.
 *
 * lr(e) = base * factor for e < totalIters, then base
 *
 * @throws BAD_ARGUMENT for a factor outside [0, 1] or totalIters below 1
 * @see torch.optim.lr_scheduler.ConstantLR, which fails at the end of a zero factor where this returns to the base lr
 * @example
 * const schedule = new ConstantLR(optimizer, { factor: 0.5, totalIters: 4 });
 */
export class ConstantLR extends PlannedLR {
  readonly #factor: number;
  readonly #totalIters: number;

  constructor(optimizer: ScheduledOptimizer, options: ConstantLROptions = {}) {
    super("ConstantLR", optimizer);
    const { factor = 1 / 3, totalIters = 5 } = givenOptions("ConstantLR", options, ["factor", "totalIters"]);
    this.#factor = finiteNumber("ConstantLR", "factor", factor, 0, 1);
    this.#totalIters = wholeNumber("ConstantLR", "totalIters", totalIters, 1);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    const lr = this.presentLr(index);
    if (epoch === 0) return lr * this.#factor;
    if (epoch !== this.#totalIters) return lr;
    return this.#factor === 0 ? this.baseLr(index) : lr * (1 / this.#factor);
  }

  protected override firstLr(index: number): number {
    return this.presentLr(index) * this.#factor;
  }

  protected override restartLr(index: number): number {
    return this.baseLr(index) * this.#factor;
  }
}
