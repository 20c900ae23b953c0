// Schedules with a closed form: the lr is a function of the epoch and the base lr, and overwrites what was there.
import { checkValue } from "../errors/check-value";
import { atLeast, finiteNumber, increasing, optionsOf, perGroup, positiveNumber, wholeFrom } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";

/** A factor for an epoch. */
export type LRLambda = (epoch: number) => number;

export interface LambdaLROptions extends ScheduleOptions {
  /** One function for all groups, or one for each. */
  lrLambda: LRLambda | readonly LRLambda[];
}

/** The function of each group. */
export function lambdasOf(where: string, optimizer: ScheduledOptimizer, options: LambdaLROptions): LRLambda[] {
  const lambda = (name: string, one: LRLambda) => {
    const advice = "Pass for example (epoch) => 0.95 ** epoch.";
    checkValue(typeof one === "function", where, name, "a function of the epoch", one, advice);
    return one;
  };
  const lrLambda = (_: string, name: string, value: LRLambda | readonly LRLambda[]) =>
    perGroup<LRLambda>(where, name, value, optimizer, lambda);
  return optionsOf(where, options, { lrLambda }).lrLambda;
}

/**
 * Multiplies the base lr by a function of the epoch.
 *
 * lr(e) = base * lrLambda(e)
 *
 * @throws OptError BAD_ARGUMENT for what is not a function, or another number of functions than groups
 * @see torch.optim.lr_scheduler.LambdaLR
 * @example
 * const schedule = new LambdaLR(optimizer, { lrLambda: (epoch) => 0.95 ** epoch });
 */
export class LambdaLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: LambdaLROptions) {
    super("LambdaLR", optimizer, options);
    const lambdas = lambdasOf(this.kind, optimizer, options);
    this.overwrite((epoch, index) => this.base(index) * this.forGroup(lambdas, index, "lrLambda")(epoch));
  }
}

export interface InverseTimeLROptions extends ScheduleOptions {
  gamma: number;
}

/**
 * Divides the lr by a number that grows with the epoch.
 *
 * lr(e) = base / (1 + gamma * e)
 *
 * @throws OptError BAD_ARGUMENT for a negative gamma
 * @see paddle.optimizer.lr.InverseTimeDecay
 * @example
 * const schedule = new InverseTimeLR(optimizer, { gamma: 0.1 });
 */
export class InverseTimeLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: InverseTimeLROptions) {
    super("InverseTimeLR", optimizer, options);
    const { gamma } = optionsOf(this.kind, options, { gamma: atLeast(0) });
    this.overwrite((epoch, index) => this.base(index) / (1 + gamma * epoch));
  }
}

export interface NaturalExpLROptions extends ScheduleOptions {
  gamma: number;
}

/**
 * Lets the lr decay exponentially with rate `gamma`.
 *
 * lr(e) = base * exp(-gamma * e)
 *
 * @throws OptError BAD_ARGUMENT for a negative gamma
 * @see paddle.optimizer.lr.NaturalExpDecay
 * @example
 * const schedule = new NaturalExpLR(optimizer, { gamma: 0.1 });
 */
export class NaturalExpLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: NaturalExpLROptions) {
    super("NaturalExpLR", optimizer, options);
    const { gamma } = optionsOf(this.kind, options, { gamma: atLeast(0) });
    this.overwrite((epoch, index) => this.base(index) * Math.exp(-gamma * epoch));
  }
}

export interface NoamLROptions extends ScheduleOptions {
  /** Width of the model. */
  dModel: number;
  /** Steps of the linear rise. */
  warmupSteps: number;
}

/**
 * The Transformer's schedule: a linear rise, then a fall with the square root of the step. Use a base lr of about 1.
 *
 * lr(e) = base * dModel^-0.5 * min(e^-0.5, e * warmupSteps^-1.5), and 0 at e = 0
 *
 * @throws OptError BAD_ARGUMENT for a dModel or warmupSteps not above 0
 * @see Vaswani et al. 2017, section 5.3; paddle.optimizer.lr.NoamDecay
 * @example
 * const schedule = new NoamLR(optimizer, { dModel: 512, warmupSteps: 4000 });
 */
export class NoamLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: NoamLROptions) {
    super("NoamLR", optimizer, options);
    const checks = { dModel: positiveNumber, warmupSteps: positiveNumber };
    const { dModel, warmupSteps } = optionsOf(this.kind, options, checks);
    this.overwrite((epoch, index) => {
      const fall = epoch === 0 ? 1 : epoch ** -0.5;
      return this.base(index) * dModel ** -0.5 * Math.min(fall, epoch * warmupSteps ** -1.5);
    });
  }
}

export interface PiecewiseLROptions extends ScheduleOptions {
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
 * @throws OptError BAD_ARGUMENT for boundaries that do not increase or another number of values than boundaries + 1
 * @see paddle.optimizer.lr.PiecewiseDecay
 * @example
 * const schedule = new PiecewiseLR(optimizer, { boundaries: [100, 200], values: [0.1, 0.01, 0.001] });
 */
export class PiecewiseLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: PiecewiseLROptions) {
    super("PiecewiseLR", optimizer, options);
    const rates = (where: string, name: string, list: readonly number[]) => {
      const count = options.boundaries.length + 1;
      const rule = `a list of ${count} learning rates, one more than boundaries`;
      const fits = Array.isArray(list) && list.length === count;
      checkValue(fits, where, name, rule, list, "Give one for each interval.");
      return list.map((value, index) => finiteNumber(where, `${name}[${index}]`, value));
    };
    const { boundaries, values } = optionsOf(this.kind, options, { boundaries: increasing, values: rates });
    this.overwrite((epoch) => values.at(boundaries.findIndex((boundary) => epoch < boundary)) as number);
  }
}

export interface CosineAnnealingWarmRestartsOptions extends ScheduleOptions {
  /** Epochs of the first period. */
  t0: number;
  /** By how much each period is longer than the one before. */
  tMult?: number;
  etaMin?: number;
}

/**
 * Falls along half a cosine wave, then starts again from the base lr.
 *
 * lr(e) = etaMin + (base - etaMin) * (1 + cos(pi * c / p)) / 2, c epochs into a period of p = t0 * tMult^(restarts)
 *
 * @throws OptError BAD_ARGUMENT for t0 or tMult below 1 or an etaMin that is not finite
 * @see Loshchilov & Hutter 2017 (SGDR); torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
 * @example
 * const schedule = new CosineAnnealingWarmRestarts(optimizer, { t0: 10, tMult: 2 });
 */
export class CosineAnnealingWarmRestarts extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: CosineAnnealingWarmRestartsOptions) {
    super("CosineAnnealingWarmRestarts", optimizer, options);
    const checks = { t0: wholeFrom(1), tMult: wholeFrom(1), etaMin: finiteNumber };
    const { t0, tMult, etaMin } = optionsOf(this.kind, options, checks, { tMult: 1, etaMin: 0 });
    this.overwrite((epoch, index) => {
      let period = t0;
      let current = epoch;
      if (tMult === 1) current %= period;
      while (current >= period) {
        current -= period;
        period *= tMult;
      }
      const wave = 1 + Math.cos((Math.PI * current) / period);
      return etaMin + ((this.base(index) - etaMin) * wave) / 2;
    });
  }
}
