/** Sums of an epoch: of losses, of samples, and what metrics add. */
import { Tensor } from "@opt/core";
import type { Metric } from "../metrics/metric";
import type { FitCommunicator } from "./parts";

export class Totals {
  /** Losses x samples, samples, and the sums of each metric. Those of ranks add up. */
  sums: number[] = [];
  /** Samples that were handed in, also those whose loss is on its way. */
  samples = 0;
  /** Loss of the last batch that was read. */
  last = Number.NaN;

  constructor(private readonly metrics: readonly Metric[]) {
    this.reset();
  }

  reset(): void {
    this.load(new Array(this.metrics.reduce((size, metric) => size + metric.state().length, 2)).fill(0));
  }

  /** Goes on from sums. */
  load(sums: readonly number[]): void {
    this.sums = [...sums];
    this.samples = sums[1]!;
  }

  /** @param values the loss, and what the metrics add */
  add(values: ArrayLike<number>, samples: number): void {
    const { sums } = this;
    this.last = values[0]!;
    sums[0]! += this.last * samples;
    sums[1]! += samples;
    for (let i = 1; i < values.length; i++) sums[i + 1]! += values[i]!;
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

  /** Sums of all ranks. As text, for JSON has no NaN. */
  async overRanks(ranks: FitCommunicator | undefined): Promise<number[]> {
    if (ranks === undefined || ranks.size === 1) return this.sums;
    const all = await ranks.gather(this.sums.map(String));
    const sums = all && this.sums.map((_, i) => String(all.reduce((sum, own) => sum + Number(own[i]), 0)));
    return (await ranks.broadcast(sums)).map(Number);
  }
}

/** Rows of a batch: those of its first tensor. */
export function samplesOf(batch: unknown): number {
  const fields = typeof batch === "object" && batch !== null ? [batch, ...Object.values(batch)] : [];
  const first = fields.find((field) => field instanceof Tensor) as Tensor | undefined;
  return first?.shape[0] ?? 1;
}
