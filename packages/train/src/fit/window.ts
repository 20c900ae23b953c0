/** The batches of one optimizer step: how much each one weighs, and by what the sum of their gradients is divided. */
import { divideGradients, full, keep, noGrad, type Tensor, tensor, tidy, where, zeros } from "@opt/core";
import type { FitCommunicator } from "./parts";

/**
 * Losses that are means weigh by their samples, in units of the window's first batch. So gradients of equal batches just add up, and
 * their sum is divided once by the number of batches. Losses of `{ sum, count }` add up as they are, and are divided by the total count.
 */
export class Window {
  /** What the loss of this batch is multiplied by. A tensor, so that a compiled step follows it. */
  readonly share: Tensor;
  /** What the sum of gradients is divided by, where losses are means. */
  readonly #divisor: Tensor;
  readonly #counts: Tensor;
  /** Samples of the first batch. */
  #unit = 0;
  /** Of all batches so far. */
  #weight = 0;
  /** Of the last batch. */
  #samples = 0;
  readonly #written = new Map<Tensor, number>();

  /** @param like a parameter, on whose device and in whose dtype it weighs */
  constructor({ device, dtype }: Tensor) {
    const on = { device, dtype: dtype === "f64" ? "f64" : "f32" } as const;
    [this.share, this.#divisor, this.#counts] = [1, 1, 0].map((value) => keep(full([1], value, on))) as [
      Tensor,
      Tensor,
      Tensor,
    ];
  }

  /** A batch of so many samples comes. Before its forward. */
  take(samples: number): void {
    if (this.#weight === 0) this.#unit = samples || 1;
    this.#samples = samples;
    this.#weight += samples / this.#unit;
    this.#write(this.share, samples / this.#unit);
    this.#write(this.#divisor, this.#weight);
  }

  /** The loss of this batch as its part of the sum. */
  weighed(loss: Tensor): Tensor {
    const wide = loss.dtype === "f64" ? loss : loss.to("f32");
    return wide.mul(this.share.to(wide.dtype).reshape([]));
  }

  /** The samples, tokens or pixels of this batch. */
  count(count: Tensor): void {
    noGrad(() => this.#counts.set(this.#counts.add(count.detach().to(this.#counts.dtype).reshape([1]))));
  }

  /** Divides the sums of gradients. */
  divide(params: Iterable<Tensor>, isCounted: boolean): void {
    noGrad(() => tidy(() => divideGradients(params, isCounted ? nonZero(this.#counts) : this.#divisor)));
  }

  /** The step is done. Part of a compiled update. */
  clear(isCounted: boolean): void {
    const { device, dtype } = this.#counts;
    if (isCounted) noGrad(() => tidy(() => this.#counts.set(zeros([1], { device, dtype }))));
  }

  next(): void {
    this.#weight = 0;
  }

  /** The weight of all batches of all ranks, whose batches are alike. */
  evenly(ranks: FitCommunicator): number {
    return ranks.size * this.#weight;
  }

  /**
   * The weight of all batches of all ranks. From now on all weigh in units of the batch of the first rank that has one.
   *
   * @param gradients those of this rank's batches, without the last one if it is still to come
   */
  async agree(ranks: FitCommunicator, gradients: Iterable<Tensor>, isLastToCome: boolean): Promise<number> {
    const own = [this.#unit, this.#weight] as const;
    const all = await ranks.broadcast(await ranks.gather(own));
    const [unit] = all.find(([, weight]) => weight > 0) ?? all[0]!;
    if (this.#unit !== unit) {
      const { device, dtype } = this.#divisor;
      const present = [...gradients].filter(({ grad }) => grad !== null);
      tidy(() => divideGradients(present, tensor([unit / this.#unit], { device, dtype })));
      if (isLastToCome) this.#write(this.share, this.#samples / unit);
    }
    return all.reduce((sum, [its, weight]) => sum + (its === unit ? weight : (weight * its) / unit), 0);
  }

  /** The counts of all ranks. */
  async countAll(ranks: FitCommunicator): Promise<void> {
    await ranks.allReduce(this.#counts);
  }

  dispose(): void {
    for (const each of [this.share, this.#divisor, this.#counts]) each.dispose();
  }

  #write(target: Tensor, value: number): void {
    if (this.#written.get(target) === value) return;
    target.set([value]);
    this.#written.set(target, value);
  }
}

/** A sum of nothing is divided by 1. */
export const nonZero = (count: Tensor): Tensor => where(count.eq(0), 1, count);
