/** Schedule-free learning over any optimizer: an average of its weights in place of a schedule. */

import { tensor } from "../create";
import { dependsOn, inEachRun, runsOnce } from "../device/host-code";
import { keep, tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { cast, clone, copyInto } from "../ops";
import type { BaseOptions } from "../optimizer/algorithm";
import type { Group } from "../optimizer/group";
import type { Around } from "../optimizer/plan";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { between, type Kept, StatefulWrapper, writeInto } from "./stateful-wrapper";
import type { Wrappable } from "./wrapper";

const WHERE = "scheduleFree";

export interface ScheduleFreeOptions {
  /** Weight of the average in the weights that are trained, in (0, 1). Default 0.9. */
  readonly momentum?: number;
  /** A step has the weight of its group's largest learning rate so far to this power, >= 0. Default 2. */
  readonly weightLrPower?: number;
}

/** The sum of the weights of all steps, the largest learning rate, and 1 while the parameters are those to train. */
export type ScheduleFreeCounters = { readonly weight_sum: number; readonly lr_max: number; readonly training: number };

/** What `scheduleFree` makes. */
export class ScheduleFree<OwnGroup extends Group<BaseOptions>> extends StatefulWrapper<OwnGroup, ScheduleFreeCounters> {
  readonly #momentum: number;
  readonly #power: number;
  /** The weight of the present step in the average of each group. */
  readonly #shares: Tensor[] = [];

  constructor(optimizer: Wrappable<OwnGroup>, options: ScheduleFreeOptions = {}) {
    checkOptions(WHERE, options, { momentum: "number", weightLrPower: "number" });
    const { momentum = 0.9, weightLrPower = 2 } = options;
    checkValue(momentum > 0 && momentum < 1, WHERE, "momentum", "above 0 and below 1", momentum, "The default is 0.9.");
    const isPower = weightLrPower >= 0 && Number.isFinite(weightLrPower);
    checkValue(isPower, WHERE, "weightLrPower", "a finite number >= 0", weightLrPower, "The default is 2.");
    super(WHERE, optimizer, "scheduleFreeZ", { weight_sum: 0, lr_max: 0, training: 1 });
    this.#momentum = momentum;
    this.#power = weightLrPower;
  }

  /** True while the parameters are those to train, and not their average. */
  get training(): boolean {
    return this.groups.every((_, g) => this.countersOf(g).training === 1);
  }

  /** @internal */
  override get keepsAverages(): boolean {
    return true;
  }

  /** Puts the weights to train in the parameters' place. Call it before you go on training. */
  override train(): void {
    if (!this.training) this.#move(1 - this.#momentum, 1);
  }

  /** Puts the average in the parameters' place, to evaluate and save. */
  override eval(): void {
    if (this.training) this.#move(1 - 1 / this.#momentum, 0);
  }

  #move(weight: number, training: number): void {
    runsOnce(WHERE, "call train() or eval()", "Call it before or after the function.");
    const kept = this.kept();
    noGrad(() =>
      tidy(() => {
        for (const { param, own } of kept.flat()) copyInto(between(param, own, weight), param);
      }),
    );
    this.setCounters((counters) => ({ ...counters, training }));
  }

  /** @internal The optimizer steps z in the parameters' place. */
  override planned(around: Around): () => void {
    dependsOn(() => this.training);
    const problem = () => "step() needs the weights that are trained, got those of eval().";
    check(this.training, "BAD_STATE", WHERE, problem, "Call optimizer.train() before.");
    this.limited();
    const kept = this.kept();
    const before = kept.map((group) =>
      group.map(({ param, own }) => ({ y: clone(param), x: between(param, own, 1 - 1 / this.#momentum) })),
    );
    const shares = kept.map((group, g) => this.#shareOf(g, group));
    for (const { param, own } of kept.flat()) copyInto(own, param);
    let launch: () => void;
    try {
      launch = super.planned(around);
    } catch (error) {
      for (const [g, group] of kept.entries()) {
        for (const [i, { param }] of group.entries()) copyInto(before[g]![i]!.y, param);
      }
      throw error;
    }
    return () => {
      launch();
      inEachRun(shares, (...present: Tensor[]) => this.#weigh(present));
      kept.forEach((group, g) => {
        for (const [i, { param, own }] of group.entries()) {
          const { x, y } = before[g]![i]!;
          copyInto(param, own);
          const average = between(x, own, cast(shares[g]!, param.dtype));
          writeInto(param, between(average, own, 1 - this.#momentum), y, around);
        }
      });
      this.count(around, (counters, group) => this.#next(counters, group));
    };
  }

  #next(counters: ScheduleFreeCounters, { lr }: OwnGroup): ScheduleFreeCounters {
    const lr_max = Math.max(counters.lr_max, lr);
    return { ...counters, lr_max, weight_sum: counters.weight_sum + lr_max ** this.#power };
  }

  #weigh(shares: readonly Tensor[]): void {
    this.groups.forEach((group, g) => {
      const { lr_max, weight_sum } = this.#next(this.countersOf(g), group);
      shares[g]!.set(weight_sum > 0 ? lr_max ** this.#power / weight_sum : 0);
    });
  }

  #shareOf(g: number, group: readonly Kept[]): Tensor {
    const known = this.#shares[g];
    if (known !== undefined) return known;
    const dtype = group.some(({ param }) => param.dtype === "f64") ? "f64" : "f32";
    const made = keep(tensor(0, { dtype, device: group[0]!.param.device }));
    this.#shares[g] = made;
    return made;
  }

  override dispose(): void {
    super.dispose();
    for (const share of this.#shares) share.dispose();
    this.#shares.length = 0;
  }
}

/**
 * Schedule-free learning: any optimizer with a constant learning rate does as well as with a schedule.
 *
 *     z = the optimizer's step of z by the gradients at y          x = (1 - c) x + c z          y = momentum x + (1 - momentum) z
 *     c = w_t / (w_1 + ... + w_t)          w_t = max(lr_1, ..., lr_t)^weightLrPower
 *
 * The parameters are y while you train. `eval()` puts the average x in their place, `train()` brings y back. State has
 * `schedule_free_z`. Leave the optimizer's own momentum off: `new SGD(params, { lr })`, `new AdamW(params, { betas: [0, 0.999] })`.
 * Parameters are f32 or f64.
 * Source: Defazio et al., "The Road Less Scheduled" (2024). `ScheduleFreeAdamW` of @opt/schedule-free does it in one launch.
 *
 * @throws OptError BAD_ARGUMENT for what is no optimizer, or options out of range; UNSUPPORTED for 16-bit and complex parameters
 * @example
 * const optimizer = scheduleFree(new AdamW([parameter([1, 2])], { betas: [0, 0.999] }));
 * optimizer.eval(); // evaluate and save the average
 * optimizer.train();
 */
export function scheduleFree<OwnGroup extends Group<BaseOptions>>(
  optimizer: Wrappable<OwnGroup>,
  options: ScheduleFreeOptions = {},
): ScheduleFree<OwnGroup> {
  return new ScheduleFree(optimizer, options);
}
