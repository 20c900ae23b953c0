import { type LambdaLROptions, type LRLambda, lambdasOf } from "./lambda";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

/**
 * Multiplies the present lr by a function of the epoch.
 *
 * lr(e) = lr(e - 1) * lrLambda(e), from the base lr at e = 0
 *
 * @throws BAD_ARGUMENT for what is not a function, or another number of functions than groups
 * @see torch.optim.lr_scheduler.MultiplicativeLR
 * @example
 * const schedule = new MultiplicativeLR(optimizer, { lrLambda: () => 0.95 });
 */
export class MultiplicativeLR extends PlannedLR {
  readonly #lambdas: readonly LRLambda[];

  constructor(optimizer: ScheduledOptimizer, options: LambdaLROptions) {
    super("MultiplicativeLR", optimizer);
    this.#lambdas = lambdasOf("MultiplicativeLR", optimizer, options);
    this.begin();
  }

  protected override nextLr(epoch: number, index: number): number {
    return this.presentLr(index) * this.forGroup(this.#lambdas, index, "lrLambda")(epoch);
  }

  /** It has no closed form, so it goes on from the lr that it is handed, as PyTorch's does. */
  protected override restartLr(index: number): number {
    return this.nextLr(0, index);
  }
}
