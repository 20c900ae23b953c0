import { finiteNumber, givenOptions, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface StepLROptions {
  /** Epochs between two decays. */
  stepSize: number;
  gamma?: number;
}

/**
 * Multiplies the lr by `gamma` every `stepSize` epochs.
 *
 * lr(e) = base * gamma^floor(e / stepSize)
 *
 * @throws BAD_ARGUMENT for a stepSize below 1 or a negative gamma
 * @see torch.optim.lr_scheduler.StepLR
 * @example
 * const schedule = new StepLR(optimizer, { stepSize: 30, gamma: 0.1 });
 */
export class StepLR extends PlannedLR {
  readonly #stepSize: number;
  readonly #gamma: number;

  constructor(optimizer: ScheduledOptimizer, options: StepLROptions) {
    super("StepLR", optimizer);
    const { stepSize, gamma = 0.1 } = givenOptions("StepLR", options, ["stepSize", "gamma"]);
    this.#stepSize = wholeNumber("StepLR", "stepSize", stepSize, 1);
    this.#gamma = finiteNumber("StepLR", "gamma", gamma, 0);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    const lr = this.presentLr(index);
    return epoch === 0 || epoch % this.#stepSize !== 0 ? lr : lr * this.#gamma;
  }
}
