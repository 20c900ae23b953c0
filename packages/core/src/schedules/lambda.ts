import { checkValue, givenOptions, perGroup } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

/** A factor for an epoch. */
export type LRLambda = (epoch: number) => number;

export interface LambdaLROptions {
  /** One function for all groups, or one for each. */
  lrLambda: LRLambda | readonly LRLambda[];
}

/** The function of each group. */
export function lambdasOf(where: string, optimizer: ScheduledOptimizer, options: LambdaLROptions): LRLambda[] {
  const { lrLambda } = givenOptions(where, options, ["lrLambda"]);
  return perGroup<LRLambda>(where, "lrLambda", lrLambda, optimizer, (name, one) => {
    const advice = "Pass for example (epoch) => 0.95 ** epoch.";
    checkValue(typeof one === "function", where, name, "a function of the epoch", one, advice);
    return one;
  });
}

/**
 * Multiplies the base lr by a function of the epoch.
 *
 * lr(e) = base * lrLambda(e)
 *
 * @throws BAD_ARGUMENT for what is not a function, or another number of functions than groups
 * @see torch.optim.lr_scheduler.LambdaLR
 * @example
 * const schedule = new LambdaLR(optimizer, { lrLambda: (epoch) => 0.95 ** epoch });
 */
export class LambdaLR extends ClosedFormLR {
  readonly #lambdas: readonly LRLambda[];

  constructor(optimizer: ScheduledOptimizer, options: LambdaLROptions) {
    super("LambdaLR", optimizer);
    this.#lambdas = lambdasOf("LambdaLR", optimizer, options);
    this.begin();
  }

  protected override lrAt(epoch: number, index: number): number {
    return this.baseLr(index) * this.forGroup(this.#lambdas, index, "lrLambda")(epoch);
  }
}
