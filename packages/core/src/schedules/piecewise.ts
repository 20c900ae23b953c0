import { checkValue, finiteNumber, givenOptions, increasing } from "./scheduler/check";
import { ClosedFormLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";

export interface PiecewiseLROptions {
  /** Epochs at which the next value begins, increasing. */
  boundaries: readonly number[];
  /** The learning rates themselves: one more than boundaries. */
  values: readonly number[];
}

/**
 * Gives the lr from a table, for all groups alike.
 *
 * lr(e) = values[i], i the first with e < boundaries[i], else the last
 *
 * @throws BAD_ARGUMENT for boundaries that do not increase or another number of values than boundaries + 1
 * @see paddle.optimizer.lr.PiecewiseDecay
 * @example
 * const schedule = new PiecewiseLR(optimizer, { boundaries: [100, 200], values: [0.1, 0.01, 0.001] });
 */
export class PiecewiseLR extends ClosedFormLR {
  readonly #boundaries: readonly number[];
  readonly #values: readonly number[];

  constructor(optimizer: ScheduledOptimizer, options: PiecewiseLROptions) {
    super("PiecewiseLR", optimizer);
    const { boundaries, values } = givenOptions("PiecewiseLR", options, ["boundaries", "values"]);
    this.#boundaries = increasing("PiecewiseLR", "boundaries", boundaries);
    const rule = `a list of ${boundaries.length + 1} learning rates, one more than boundaries`;
    const fits = Array.isArray(values) && values.length === boundaries.length + 1;
    checkValue(fits, "PiecewiseLR", "values", rule, values, "Give one for each interval.");
    this.#values = values.map((value, index) => finiteNumber("PiecewiseLR", `values[${index}]`, value));
    this.begin();
  }

  protected override lrAt(epoch: number): number {
    const interval = this.#boundaries.findIndex((boundary) => epoch < boundary);
    return this.#values.at(interval) as number;
  }
}
