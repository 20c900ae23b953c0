import { checkValue, finiteNumber, givenOptions, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface MultiStepLROptions {
  /** Epochs at which the lr decays, in any order; one that occurs twice counts twice. */
  milestones: Iterable<number>;
  gamma?: number;
}

/**
 * Multiplies the lr by `gamma` at each milestone.
 *
 * lr(e) = base * gamma^(number of milestones <= e)
 *
 * @throws BAD_ARGUMENT for milestones that are not whole numbers or a negative gamma
 * @see torch.optim.lr_scheduler.MultiStepLR
 * @example
 * const schedule = new MultiStepLR(optimizer, { milestones: [30, 80], gamma: 0.1 });
 */
export class MultiStepLR extends PlannedLR {
  readonly #counts = new Map<number, number>();
  readonly #gamma: number;

  constructor(optimizer: ScheduledOptimizer, options: MultiStepLROptions) {
    super("MultiStepLR", optimizer);
    const { milestones, gamma = 0.1 } = givenOptions("MultiStepLR", options, ["milestones", "gamma"]);
    const isList = typeof milestones?.[Symbol.iterator] === "function" && typeof milestones !== "string";
    checkValue(isList, "MultiStepLR", "milestones", "a list of epochs", milestones, "Pass for example [30, 80].");
    for (const milestone of milestones) {
      const epoch = wholeNumber("MultiStepLR", "every milestone", milestone, 0);
      this.#counts.set(epoch, (this.#counts.get(epoch) ?? 0) + 1);
    }
    this.#gamma = finiteNumber("MultiStepLR", "gamma", gamma, 0);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    return this.presentLr(index) * this.#decay(epoch);
  }

  protected override firstLr(index: number): number {
    return this.presentLr(index) * this.#decay(0);
  }

  protected override restartLr(index: number): number {
    return this.baseLr(index) * this.#decay(0);
  }

  #decay(epoch: number): number {
    return this.#gamma ** (this.#counts.get(epoch) ?? 0);
  }
}
