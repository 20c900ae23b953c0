import { finiteNumber, givenOptions } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface InverseTimeLROptions {
  gamma: number;
}

/**
 * Divides the lr by a number that grows with the epoch.
 *
 * lr(e) = base / (1 + gamma * e)
 *
 * @throws BAD_ARGUMENT for a negative gamma
 * @see paddle.optimizer.lr.InverseTimeDecay
 * @example
 * const schedule = new InverseTimeLR(optimizer, { gamma: 0.1 });
 */
export class InverseTimeLR extends ClosedFormLR {
  readonly #gamma: number;

  constructor(optimizer: ScheduledOptimizer, options: InverseTimeLROptions) {
    super("InverseTimeLR", optimizer);
    const { gamma } = givenOptions("InverseTimeLR", options, ["gamma"]);
    this.#gamma = finiteNumber("InverseTimeLR", "gamma", gamma, 0);
    this.begin();
  }

  protected override lrAt(epoch: number, index: number): number {
    return this.baseLr(index) / (1 + this.#gamma * epoch);
  }
}
