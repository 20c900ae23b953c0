/** What is read of a batch: its loss and what each metric adds, in one tensor, so that there is one read. */
import { check, concat, type Tensor } from "@opt/core";
import type { Metric } from "../metrics/metric";
import type { Computed } from "./inputs";
import { WHERE } from "./options";

export class Readings {
  #isCounted: boolean | undefined;

  constructor(private readonly metrics: readonly Metric[]) {}

  /** Whether losses are `{ sum, count }`. Undefined before the first batch. */
  get isCounted(): boolean | undefined {
    return this.#isCounted;
  }

  /** The loss, or the sum and the count, and behind them the metrics' sums. @throws OptError BAD_ARGUMENT for metrics without an output and a target */
  of({ loss, count, output, target }: Computed): Tensor {
    const { metrics } = this;
    this.#isCounted ??= count !== undefined;
    const isAlike = this.#isCounted === (count !== undefined);
    const problem = () => "the loss must be { sum, count } for all batches or for none, got both.";
    check(isAlike, "BAD_ARGUMENT", WHERE, problem, "Return { sum, count } in each call.");
    if (metrics.length === 0 && count === undefined) return loss;
    check(
      metrics.length === 0 || (output && target),
      "BAD_ARGUMENT",
      WHERE,
      () => "metrics need an output and a target, got a loss alone.",
      "Return { loss, output, target } from forward.",
    );
    const values = [loss, ...(count === undefined ? [] : [count])].map((each) => each.detach().reshape([1]));
    const sums = metrics.map((metric) => metric.sums(output!.detach(), target!));
    return concat([...values, ...sums].map((each) => each.to("f32")));
  }
}
