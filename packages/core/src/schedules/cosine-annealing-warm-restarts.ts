import { finiteNumber, givenOptions, wholeNumber } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface CosineAnnealingWarmRestartsOptions {
  /** Epochs of the first period. */
  t0: number;
  /** By how much each period is longer than the one before. */
  tMult?: number;
  etaMin?: number;
}

/**
 * Falls along half a cosine wave, then starts again from the base lr.
 *
 * lr(e) = etaMin + (base - etaMin) * (1 + cos(pi * c / p)) / 2, c epochs into a period of p = t0 * tMult^(restarts)
 *
 * @throws BAD_ARGUMENT for t0 or tMult below 1 or an etaMin that is not finite
 * @see Loshchilov & Hutter 2017 (SGDR); torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
 * @example
 * const schedule = new CosineAnnealingWarmRestarts(optimizer, { t0: 10, tMult: 2 });
 */
export class CosineAnnealingWarmRestarts extends ClosedFormLR {
  readonly #t0: number;
  readonly #tMult: number;
  readonly #etaMin: number;

  constructor(optimizer: ScheduledOptimizer, options: CosineAnnealingWarmRestartsOptions) {
    super("CosineAnnealingWarmRestarts", optimizer);
    const {
      t0,
      tMult = 1,
      etaMin = 0,
    } = givenOptions("CosineAnnealingWarmRestarts", options, ["t0", "tMult", "etaMin"]);
    this.#t0 = wholeNumber("CosineAnnealingWarmRestarts", "t0", t0, 1);
    this.#tMult = wholeNumber("CosineAnnealingWarmRestarts", "tMult", tMult, 1);
    this.#etaMin = finiteNumber("CosineAnnealingWarmRestarts", "etaMin", etaMin);
    this.begin();
  }

  protected override lrAt(epoch: number, index: number): number {
    let period = this.#t0;
    let current = epoch;
    if (this.#tMult === 1) current %= period;
    while (current >= period) {
      current -= period;
      period *= this.#tMult;
    }
    const wave = 1 + Math.cos((Math.PI * current) / period);
    return this.#etaMin + ((this.baseLr(index) - this.#etaMin) * wave) / 2;
  }
}
