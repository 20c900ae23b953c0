import { finiteNumber, givenOptions } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface NaturalExpLROptions {
  gamma: number;
}

/**
 * Lets the lr decay exponentially with rate `gamma`.
 *
 * lr(e) = base * exp(-gamma * e)
 *
 * @throws BAD_ARGUMENT for a negative gamma
 * @see paddle.optimizer.lr.NaturalExpDecay
 * @example
 * const schedule = new NaturalExpLR(optimizer, { gamma: 0.1 });
 */
export class NaturalExpLR extends ClosedFormLR {
  readonly #gamma: number;

  constructor(optimizer: ScheduledOptimizer, options: NaturalExpLROptions) {
    super("NaturalExpLR", optimizer);
    const { gamma } = givenOptions("NaturalExpLR", options, ["gamma"]);
    this.#gamma = finiteNumber("NaturalExpLR", "gamma", gamma, 0);
    this.begin();
  }

  protected override lrAt(epoch: number, index: number): number {
    return this.baseLr(index) * Math.exp(-this.#gamma * epoch);
  }
}
