/** Steps as a program writes them, eager or compiled, and on ranks. */
import { autocast, clipGradNorm, clipGradValue, compile, isEvicted, manualSeed, type Tensor, tidy } from "@opt/core";
import type { LBFGS } from "@opt/optim";
import { FullyShardedDataParallel, ShardedOptimizer } from "@opt/parallel";
import { type Configuration, callsClosure } from "@opt/testkit/configurations";
import { type Batch, lossOf } from "./batches";
import type { Parts } from "./parts";

/** What each rank draws from in a step. */
export const seedOf = ({ seed }: Configuration, step: number, rank: number): number => seed * 64 + step * 8 + rank;

const LARGE = { f64: 1e308, f32: 1e38, bf16: 1e38, f16: 6e4 } as const;

/** The mean loss of a batch, or its sum and count. */
export function forward(one: Configuration, { parallel, module }: Parts, batch: Batch) {
  const [x, , overflows] = batch;
  const run = () => {
    const input = x.dtype === "i32" ? x : x.to(one.dtype);
    // In the type of the parameters, whose largest number it is near.
    const burst = one.overflows && overflows.max().to(one.dtype).mul(LARGE[one.dtype]);
    const model = (parallel ?? module) as { forward(x: Tensor, burst?: Tensor): Tensor };
    return lossOf(one, model.forward(input, burst), batch);
  };
  return one.autocast ? autocast(one.autocast, run) : run();
}

export class ByHand {
  readonly #backward: (batch: Batch, share: number) => Tensor;
  readonly #clip: () => void;
  readonly #update: () => unknown;
  readonly #average: () => void;
  /** All of a step in one function, where nobody waits in it. */
  readonly #whole: ((batch: Batch) => Tensor) | undefined;

  constructor(
    readonly one: Configuration,
    readonly parts: Parts,
    isCompiled: boolean,
    divisor: number,
  ) {
    const { optimizer, scaler, ema, parallel } = parts;
    const backward = (batch: Batch, share: number) => {
      const loss = forward(one, parts, batch) as Tensor;
      if (!isCompiled && !one.overflows) checkEvicted(parts);
      const part = divisor > 1 ? loss.div(divisor) : share === 1 ? loss : loss.mul(share);
      (scaler ? scaler.scale(part) : part).backward();
      return loss.detach();
    };
    const clip = () => {
      const clips = one.clipNorm !== undefined || one.clipValue !== undefined;
      const parameters = parts.named.map(([, parameter]) => parameter);
      if (clips && scaler) scaler.unscale(optimizer as never);
      if (one.clipNorm !== undefined) clipGradNorm(parameters, one.clipNorm);
      if (one.clipValue !== undefined) clipGradValue(parameters, one.clipValue);
    };
    /** A promise with a divided optimizer, and where a scaler waits for its device. */
    const update = () => {
      clip();
      const stepped = scaler ? scaler.step(optimizer as never) : optimizer.step();
      const end = () => optimizer.zeroGrad();
      const updated = () => {
        const after = scaler?.update();
        return after ? after.then(end) : end();
      };
      return stepped ? stepped.then(updated) : updated();
    };
    const wrap = <Args extends unknown[], Result>(f: (...args: Args) => Result) =>
      isCompiled ? compile(f) : (...args: Args) => tidy(() => f(...args));
    const { backend } = parts.module.parameters()[0]!.device;
    const readsLater = scaler !== undefined && !backend.readSync;
    const waits = optimizer instanceof ShardedOptimizer || callsClosure(one) || readsLater;
    this.#backward = wrap(backward);
    this.#clip = wrap(clip);
    this.#average = ema ? wrap(() => ema.update()) : () => {};
    this.#update = waits ? update : wrap(() => void update());
    if (isCompiled && !waits && parallel === undefined && divisor === 1)
      this.#whole = compile((batch: Batch) => {
        const loss = backward(batch, 1);
        void update();
        return loss;
      });
  }

  /** Forward and backward of one batch, whose loss counts by its share. */
  async backward(batch: Batch, share = 1): Promise<string> {
    return lossText(this.#backward(batch, share));
  }

  /** The step of what was accumulated. */
  async update(): Promise<void> {
    await this.#update();
    this.#end();
  }

  /** A skipped step moves neither averages nor rates. */
  #end(): void {
    const { scaler, schedule } = this.parts;
    if (scaler?.stepWasSkipped) return;
    this.#average();
    schedule?.step();
  }

  /** A step of this rank's batches. Returns their losses. */
  async step(batches: readonly Batch[], step: number, rank: number): Promise<string[]> {
    const { parallel } = this.parts;
    const seed = () => manualSeed(seedOf(this.one, step, rank));
    if (this.#whole) {
      seed();
      const loss = await lossText(this.#whole(batches[0]!));
      this.#end();
      return [loss];
    }
    const compute = async () => {
      seed();
      const losses: string[] = [];
      const before = async () => {
        for (const batch of batches.slice(0, -1)) losses.push(await this.backward(batch));
      };
      await (parallel ? parallel.noSync(before) : before());
      losses.push(await this.backward(batches.at(-1)!));
      await parallel?.sync();
      return losses;
    };
    return this.descend(compute, meanOf);
  }

  /** A step by gradients that `compute` leaves. LBFGS and SAM ask for them several times, and LBFGS for the loss. Returns what was computed first. */
  async descend<Losses>(compute: () => Promise<Losses>, lossOf: (losses: Losses) => number): Promise<Losses> {
    const optimizer = this.parts.optimizer as unknown as Pick<LBFGS, "step" | "zeroGrad">;
    if (!callsClosure(this.one)) {
      const losses = await compute();
      await this.update();
      return losses;
    }
    let first: Losses | undefined;
    await optimizer.step(async () => {
      optimizer.zeroGrad();
      const losses = await compute();
      first ??= losses;
      this.#clip();
      return lossOf(losses);
    });
    optimizer.zeroGrad();
    this.#end();
    return first!;
  }
}

/** Of numbers, perhaps as text. */
export const meanOf = (numbers: readonly (string | number)[]): number =>
  numbers.reduce((sum: number, each) => sum + Number(each), 0) / numbers.length;

async function lossText(loss: Tensor): Promise<string> {
  const value = String((await loss.data())[0]);
  loss.dispose();
  return value;
}

/** Blocks of a divided model are whole while they compute. */
function checkEvicted({ module, named, parallel }: Parts): void {
  if (!(parallel instanceof FullyShardedDataParallel)) return;
  const whole = module.namedParameters();
  const kept = named.findIndex(
    ([name, part], i) => /block/.test(name) && part !== whole[i]![1] && !isEvicted(whole[i]![1]),
  );
  if (kept >= 0) throw new Error(`${whole[kept]![0]} stays whole after its forward`);
}
