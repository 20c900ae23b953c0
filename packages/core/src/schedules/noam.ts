import { givenOptions, positiveNumber } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface NoamLROptions {
  /** Width of the model. */
  dModel: number;
  /** Steps of the linear rise. */
  warmupSteps: number;
}

/**
 * The Transformer's schedule: a linear rise, then a fall with the square root of the step. Use a base lr of about 1.
 *
 * lr(e) = base * dModel^-0.5 * min(e^-0.5, e * warmupSteps^-1.5), and 0 at e = 0
 *
 * @throws BAD_ARGUMENT for a dModel or warmupSteps not above 0
 * @see Vaswani et al. 2017, section 5.3; paddle.optimizer.lr.NoamDecay
 * @example
 * const schedule = new NoamLR(optimizer, { dModel: 512, warmupSteps: 4000 });
 */
export class NoamLR extends ClosedFormLR {
  readonly #dModel: number;
  readonly #warmupSteps: number;

  constructor(optimizer: ScheduledOptimizer, options: NoamLROptions) {
    super("NoamLR", optimizer);
    const { dModel, warmupSteps } = givenOptions("NoamLR", options, ["dModel", "warmupSteps"]);
    this.#dModel = positiveNumber("NoamLR", "dModel", dModel);
    this.#warmupSteps = positiveNumber("NoamLR", "warmupSteps", warmupSteps);
    this.begin();
  }

  protected override lrAt(epoch: number, index: number): number {
    const fall = epoch === 0 ? 1 : epoch ** -0.5;
    return this.baseLr(index) * this.#dModel ** -0.5 * Math.min(fall, epoch * this.#warmupSteps ** -1.5);
  }
}
