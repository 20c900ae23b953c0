/** Sums of an epoch: the loss by samples, and the metrics. */
import { Tensor } from "@opt/core";
import type { Metric } from "../metrics/metric";

/** Plain JSON. */
export interface TotalsState {
  loss: number;
  samples: number;
  metrics: number[][];
}

export class Totals {
  #loss = 0;
  #read = 0;
  /** Samples that were handed in, also those whose loss is still on its way. */
  samples = 0;
  /** Loss of the last batch that was read. */
  last = Number.NaN;

  constructor(readonly metrics: readonly Metric[]) {}

  reset(): void {
    this.#loss = 0;
    this.#read = 0;
    this.samples = 0;
    for (const metric of this.metrics) metric.reset();
  }

  /** @param values the loss, and what the metrics add */
  add(values: ArrayLike<number>, samples: number): void {
    this.last = values[0]!;
    this.#loss += this.last * samples;
    this.#read += samples;
    let at = 1;
    for (const metric of this.metrics) {
      const { length } = metric.state();
      metric.add(Array.prototype.slice.call(values, at, at + length));
      at += length;
    }
  }

  /** Means by name, of these sums or of those given. */
  means(state: TotalsState = this.state()): { loss: number; [name: string]: number } {
    const values = this.metrics.map((metric, i) => [metric.name, metric.value(state.metrics[i])]);
    return { loss: state.loss / state.samples, ...Object.fromEntries(values) };
  }

  state(): TotalsState {
    return { loss: this.#loss, samples: this.#read, metrics: this.metrics.map((metric) => [...metric.state()]) };
  }

  /** Goes on from a state. @param metrics whose sums are added to fresh ones */
  load({ loss, samples, metrics }: TotalsState): void {
    this.reset();
    this.#loss = loss;
    this.#read = samples;
    this.samples = samples;
    this.metrics.forEach((metric, i) => {
      metric.add(metrics[i]!);
    });
  }
}

/** Rows of a batch: those of its last tensor with axes. */
export function samplesOf(batch: unknown): number {
  if (batch instanceof Tensor) return batch.shape[0] ?? 1;
  const fields = typeof batch === "object" && batch !== null ? Object.values(batch) : [];
  for (const field of fields) if (field instanceof Tensor) return field.shape[0] ?? 1;
  return 1;
}

/** Adds up over ranks. */
export function addUp(states: readonly TotalsState[]): TotalsState {
  const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);
  return {
    loss: sum(states.map(({ loss }) => loss)),
    samples: sum(states.map(({ samples }) => samples)),
    metrics: states[0]!.metrics.map((list, m) => list.map((_, i) => sum(states.map(({ metrics }) => metrics[m]![i]!)))),
  };
}
