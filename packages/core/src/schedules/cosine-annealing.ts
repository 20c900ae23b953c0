import { finiteNumber, givenOptions, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface CosineAnnealingLROptions {
  /** Epochs from the base lr to the lowest: half a wave. */
  tMax: number;
  etaMin?: number;
}

/**
 * Moves the lr along a cosine wave between the base lr and `etaMin`.
 *
 * lr(e) = etaMin + (base - etaMin) * (1 + cos(pi * e / tMax)) / 2, computed from the lr before it, so that it chains
 *
 * @throws BAD_ARGUMENT for a tMax below 1 or an etaMin that is not finite
 * @see Loshchilov & Hutter 2017 (SGDR); torch.optim.lr_scheduler.CosineAnnealingLR
 * @example
 * const schedule = new CosineAnnealingLR(optimizer, { tMax: 100, etaMin: 1e-5 });
 */
export class CosineAnnealingLR extends PlannedLR {
  readonly #tMax: number;
  readonly #etaMin: number;

  constructor(optimizer: ScheduledOptimizer, options: CosineAnnealingLROptions) {
    super("CosineAnnealingLR", optimizer);
    const { tMax, etaMin = 0 } = givenOptions("CosineAnnealingLR", options, ["tMax", "etaMin"]);
    this.#tMax = wholeNumber("CosineAnnealingLR", "tMax", tMax, 1);
    this.#etaMin = finiteNumber("CosineAnnealingLR", "etaMin", etaMin);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    const lr = this.presentLr(index);
    // One past the bottom the ratio below would divide by zero: the first rise is added instead.
    if ((epoch - 1 - this.#tMax) % (2 * this.#tMax) === 0) {
      return lr + ((this.baseLr(index) - this.#etaMin) * (1 - Math.cos(Math.PI / this.#tMax))) / 2;
    }
    return (this.#height(epoch) / this.#height(epoch - 1)) * (lr - this.#etaMin) + this.#etaMin;
  }

  #height(epoch: number): number {
    return 1 + Math.cos((Math.PI * epoch) / this.#tMax);
  }
}
