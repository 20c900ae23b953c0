import { finiteNumber, givenOptions } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface ExponentialLROptions {
  gamma: number;
}

/**
 * Multiplies the lr by `gamma` every epoch.
 *
 * lr(e) = base * gamma^e
 *
 * @throws BAD_ARGUMENT for a negative gamma
 * @see torch.optim.lr_scheduler.ExponentialLR
 * @example
 * const schedule = new ExponentialLR(optimizer, { gamma: 0.95 });
 */
export class ExponentialLR extends PlannedLR {
  readonly #gamma: number;

  constructor(optimizer: ScheduledOptimizer, options: ExponentialLROptions) {
    super("ExponentialLR", optimizer);
    const { gamma } = givenOptions("ExponentialLR", options, ["gamma"]);
    this.#gamma = finiteNumber("ExponentialLR", "gamma", gamma, 0);
    this.begin();
  }

  protected override nextLr(_epoch: number, index: number): number {
    return this.presentLr(index) * this.#gamma;
  }
}
