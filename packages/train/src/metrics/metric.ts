/** Metrics: sums over batches that add up over steps and ranks. */
import { check, noGrad, show, type Tensor, tidy } from "@opt/core";
import { readThen } from "./reads";

/**
 * A number that is streamed over batches. Its state is a list of sums, so those of several ranks add up. `sumMetric` makes your own.
 *
 * @example
 * const right = accuracy();
 * right.update(model.forward(x), y);
 * console.log(right.value());
 */
export interface Metric {
  /** Its name in history and progress. */
  readonly name: string;
  /** Adds a batch. On devices that answer later, wait for the promise. */
  update(output: Tensor, target: Tensor): void | Promise<void>;
  /** Of the own state, or of a state given. */
  value(state?: readonly number[]): number;
  reset(): void;
  state(): readonly number[];
  /** What a batch adds to the state, as one tensor: `fit` computes it inside its compiled step. */
  sums(output: Tensor, target: Tensor): Tensor;
}

/** What a metric is made of. */
export interface MetricDefinition {
  readonly name: string;
  /** Length of `sums`. */
  readonly size: number;
  /** A batch's sums: a tensor [size], computed on its device. */
  sums(output: Tensor, target: Tensor): Tensor;
  value(sums: readonly number[]): number;
}

/**
 * A metric of sums: `value` computes the number from the sums of all batches so far.
 *
 * @example
 * const rootMeanSquare = sumMetric({
 *   name: "rmse",
 *   size: 2,
 *   sums: (output, target) => concat([output.sub(target).pow(2).sum().reshape([1]), full([1], target.size)]),
 *   value: ([squares, count]) => Math.sqrt(squares! / count!),
 * });
 */
export function sumMetric({ name, size, sums, value }: MetricDefinition): Metric {
  let state: number[] = new Array(size).fill(0);
  const add = (more: ArrayLike<number>) => {
    state = state.map((sum, i) => sum + more[i]!);
  };
  return {
    name,
    sums,
    update: (output, target) =>
      readThen(
        noGrad(() => tidy(() => sums(output, target))),
        add,
      ),
    value: (given = state) => value(given),
    reset() {
      state = state.map(() => 0);
    },
    state: () => [...state],
  };
}

/** @throws OptError BAD_ARGUMENT */
export function checkMetrics(where: string, metrics: readonly unknown[] = []): void {
  for (const metric of metrics) {
    const isMetric = typeof (metric as Metric | null)?.sums === "function";
    check(
      isMetric,
      "BAD_ARGUMENT",
      where,
      () => `metrics must be a list of metrics, got ${show(metric)}.`,
      "For example metrics: [accuracy()].",
    );
  }
}
