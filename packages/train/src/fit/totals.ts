/** Sums of an epoch: of losses, of samples, and what metrics add. */
import { Tensor } from "@opt/core";
import type { Metric } from "../metrics/metric";
import { exchanged, type Failure } from "./agreement";
import type { FitCommunicator } from "./parts";

export class Totals {
  /** Losses x weights, weights (samples, or counts), and the sums of each metric. Those of ranks add up. */
  sums: number[] = [];
  /** Samples that were handed in, also those whose loss is on its way. */
  samples = 0;
  /** Loss of the last batch that was read. */
  last = Number.NaN;

  constructor(private readonly metrics: readonly Metric[]) {
    this.reset();
  }

  reset(): void {
    this.load(new Array(this.metrics.reduce((size, metric) => size + metric.state().length, 2)).fill(0), 0);
  }

  /** Goes on from sums of so many samples. */
  load(sums: readonly number[], samples: number): void {
    this.sums = [...sums];
    this.samples = samples;
  }

  /**
   * Adds what `Readings` gave of a batch. Returns how much its loss weighs: its samples, or its count.
   *
   * @param isCounted values begin with a sum and its count, else with a mean
   */
  add(values: ArrayLike<number>, samples: number, isCounted: boolean): number {
    const { sums } = this;
    const [first, weight] = [values[0]!, isCounted ? values[1]! : samples];
    this.last = isCounted ? first / (weight || 1) : first;
    sums[0]! += isCounted ? first : first * weight;
    sums[1]! += weight;
    const behind = isCounted ? 2 : 1;
    for (let i = behind; i < values.length; i++) sums[i + 2 - behind]! += values[i]!;
    return weight;
  }

  /** Means by name, of these sums or of those given. */
  means(sums: readonly number[] = this.sums): { loss: number; [name: string]: number } {
    let at = 2;
    const values = this.metrics.map((metric) => {
      const own = sums.slice(at, at + metric.state().length);
      at += own.length;
      return [metric.name, metric.value(own)];
    });
    return { loss: sums[0]! / sums[1]!, ...Object.fromEntries(values) };
  }

  /**
   * Sums of all ranks.
   *
   * @throws what this rank threw in measuring them; OptError IO where another one did
   */
  async overRanks(where: string, ranks: FitCommunicator | undefined, failure?: Failure): Promise<number[]> {
    if (ranks === undefined || ranks.size === 1) {
      if (failure) throw failure.error;
      return this.sums;
    }
    // As text, for JSON has no NaN.
    const all = await exchanged(where, ranks, this.sums.map(String), failure);
    return this.sums.map((_, i) => all.reduce((sum, own) => sum + Number(own[i]), 0));
  }
}

/** Rows of a batch: those of its first tensor. */
export function samplesOf(batch: unknown): number {
  if (Array.isArray(batch) && batch[0] instanceof Tensor) return batch[0].shape[0] ?? 1;
  const fields = typeof batch === "object" && batch !== null ? [batch, ...Object.values(batch)] : [];
  const first = fields.find((field) => field instanceof Tensor) as Tensor | undefined;
  return first?.shape[0] ?? 1;
}
