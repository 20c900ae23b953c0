import { finiteNumber, givenOptions, positiveNumber, trueOrFalse, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface PolynomialLROptions {
  /** Epochs from the base lr to the end. */
  totalIters?: number;
  power?: number;
  /** The lr at the end (PaddlePaddle's end_lr). */
  endLr?: number;
  /** Instead of staying at the end, starts again over the next multiple of totalIters (PaddlePaddle's cycle). */
  cycle?: boolean;
}

/**
 * Lowers the lr along a power of the remaining time.
 *
 * lr(e) = endLr + (base - endLr) * (1 - min(e, T) / T)^power; with cycle, T grows to T * max(1, ceil(e / T)) instead
 *
 * @throws BAD_ARGUMENT for totalIters below 1, a power not above 0 or an endLr that is not finite
 * @see torch.optim.lr_scheduler.PolynomialLR (chainable, the defaults); paddle.optimizer.lr.PolynomialDecay (the last
 * two options; with cycle the lr is overwritten)
 * @example
 * const schedule = new PolynomialLR(optimizer, { totalIters: 100, power: 2 });
 */
export class PolynomialLR extends PlannedLR {
  readonly #totalIters: number;
  readonly #power: number;
  readonly #endLr: number;
  readonly #cycle: boolean;

  constructor(optimizer: ScheduledOptimizer, options: PolynomialLROptions = {}) {
    super("PolynomialLR", optimizer);
    const names = ["totalIters", "power", "endLr", "cycle"] as const;
    const { totalIters = 5, power = 1, endLr = 0, cycle = false } = givenOptions("PolynomialLR", options, names);
    this.#totalIters = wholeNumber("PolynomialLR", "totalIters", totalIters, 1);
    this.#power = positiveNumber("PolynomialLR", "power", power);
    this.#endLr = finiteNumber("PolynomialLR", "endLr", endLr);
    this.#cycle = trueOrFalse("PolynomialLR", "cycle", cycle);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    if (this.#cycle) return this.#cyclicLr(epoch, index);
    const lr = this.presentLr(index);
    if (epoch > this.#totalIters) return lr;
    const remaining = (1 - epoch / this.#totalIters) / (1 - (epoch - 1) / this.#totalIters);
    return (lr - this.#endLr) * remaining ** this.#power + this.#endLr;
  }

  #cyclicLr(epoch: number, index: number): number {
    const total = this.#totalIters * Math.max(1, Math.ceil(epoch / this.#totalIters));
    return (this.baseLr(index) - this.#endLr) * (1 - epoch / total) ** this.#power + this.#endLr;
  }
}
