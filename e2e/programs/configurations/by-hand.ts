/** Steps as a program writes them, eager or compiled, and on ranks. */
import { autocast, clipGradNorm, clipGradValue, compile, manualSeed, type Tensor, tidy } from "@opt/core";
import { FullyShardedDataParallel, ShardedOptimizer } from "@opt/parallel";
import type { Configuration } from "@opt/testkit/configurations";
import { type Batch, lossOf } from "./batches";
import type { Parts } from "./parts";

/** What each rank draws from in a step. */
export const seedOf = ({ seed }: Configuration, step: number, rank: number): number => seed * 64 + step * 8 + rank;

/** The mean loss of a batch, or its sum and count. */
export function forward(one: Configuration, { parallel, module }: Parts, batch: Batch) {
  const [x] = batch;
  const run = () => {
    const input = x.dtype === "i32" ? x : x.to(one.dtype);
    return lossOf(one, (parallel ?? module).forward(input) as Tensor, batch);
  };
  return one.autocast ? autocast(one.autocast, run) : run();
}

export class ByHand {
  readonly #backward: (batch: Batch, share: number) => Tensor;
  readonly #update: () => unknown;
  readonly #average: () => void;

  constructor(
    readonly one: Configuration,
    readonly parts: Parts,
    isCompiled: boolean,
    divisor: number,
  ) {
    const { optimizer, scaler, ema, parallel } = parts;
    const backward = (batch: Batch, share: number) => {
      const loss = forward(one, parts, batch) as Tensor;
      const part = divisor > 1 ? loss.div(divisor) : share === 1 ? loss : loss.mul(share);
      (scaler ? scaler.scale(part) : part).backward();
      return loss.detach();
    };
    const step = () => (scaler ? scaler.step(optimizer as never) : optimizer.step());
    const clip = () => {
      const clips = one.clipNorm !== undefined || one.clipValue !== undefined;
      const parameters = parallel instanceof FullyShardedDataParallel ? parallel.parameters() : parts.module.parameters();
      if (clips && scaler) scaler.unscale(optimizer as never);
      if (one.clipNorm !== undefined) clipGradNorm(parameters, one.clipNorm);
      if (one.clipValue !== undefined) clipGradValue(parameters, one.clipValue);
    };
    const isWaiting = optimizer instanceof ShardedOptimizer;
    const update = () => {
      clip();
      step();
      scaler?.update();
      optimizer.zeroGrad();
    };
    const average = () => ema?.update();
    const wrap = <Args extends unknown[], Result>(f: (...args: Args) => Result) =>
      isCompiled ? compile(f) : (...args: Args) => tidy(() => f(...args));
    this.#backward = wrap(backward);
    this.#average = ema ? wrap(average) : average;
    this.#update = isWaiting
      ? async () => {
          clip();
          await step();
          await scaler?.update();
          optimizer.zeroGrad();
        }
      : wrap(update);
  }

  /** Forward and backward of one batch, whose loss counts by its share. */
  async backward(batch: Batch, share = 1): Promise<string> {
    const loss = this.#backward(batch, share);
    const value = String((await loss.data())[0]);
    loss.dispose();
    return value;
  }

  /** The step of what was accumulated. */
  async update(): Promise<void> {
    const { scaler, schedule } = this.parts;
    await this.#update();
    if (scaler?.stepWasSkipped) return;
    this.#average();
    schedule?.step();
  }

  /** A step of this rank's batches. Returns their losses. */
  async step(batches: readonly Batch[], step: number, rank: number): Promise<string[]> {
    const { parallel } = this.parts;
    manualSeed(seedOf(this.one, step, rank));
    const losses: string[] = [];
    const before = async () => {
      for (const batch of batches.slice(0, -1)) losses.push(await this.backward(batch));
    };
    await (parallel ? parallel.noSync(before) : before());
    losses.push(await this.backward(batches.at(-1)!));
    await parallel?.sync();
    await this.update();
    return losses;
  }
}
