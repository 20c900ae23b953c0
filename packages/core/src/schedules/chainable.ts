// Schedules in PyTorch's chainable form: each changes the lr it finds, so that several on one optimizer multiply.

import { checkValue } from "../errors/check-value";
import { type LambdaLROptions, lambdasOf } from "./closed-forms";
import {
  atLeast,
  between,
  finiteNumber,
  isFiniteNumber,
  optionsOf,
  trueOrFalse,
  wholeFrom,
  wholeNumber,
} from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer, ScheduleOptions } from "./scheduler/scheduled-optimizer";

/**
 * Multiplies the present lr by a function of the epoch.
 *
 * lr(e) = lr(e - 1) * lrLambda(e), from the base lr at e = 0
 *
 * @throws OptError BAD_ARGUMENT for what is not a function, or another number of functions than groups
 * @see torch.optim.lr_scheduler.MultiplicativeLR
 * @example
 * const schedule = new MultiplicativeLR(optimizer, { lrLambda: () => 0.95 });
 */
export class MultiplicativeLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: LambdaLROptions) {
    super("MultiplicativeLR", optimizer, options);
    const lambdas = lambdasOf(this.kind, optimizer, options);
    this.chain((lr, epoch, index) => lr * this.forGroup(lambdas, index, "lrLambda")(epoch));
  }

  /** It has no closed form, so it goes on from the lr that it is handed, as PyTorch's does. @internal */
  override restart(): void {
    this.stepTo(0);
  }
}

export interface ExponentialLROptions extends ScheduleOptions {
  gamma: number;
}

/**
 * Multiplies the lr by `gamma` every epoch.
 *
 * lr(e) = base * gamma^e
 *
 * @throws OptError BAD_ARGUMENT for a negative gamma
 * @see torch.optim.lr_scheduler.ExponentialLR
 * @example
 * const schedule = new ExponentialLR(optimizer, { gamma: 0.95 });
 */
export class ExponentialLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: ExponentialLROptions) {
    super("ExponentialLR", optimizer, options);
    const { gamma } = optionsOf(this.kind, options, { gamma: atLeast(0) });
    this.chain((lr) => lr * gamma);
  }
}

export interface StepLROptions extends ScheduleOptions {
  /** Epochs between two decays. */
  stepSize: number;
  gamma?: number;
}

/**
 * Multiplies the lr by `gamma` every `stepSize` epochs.
 *
 * lr(e) = base * gamma^floor(e / stepSize)
 *
 * @throws OptError BAD_ARGUMENT for a stepSize below 1 or a negative gamma
 * @see torch.optim.lr_scheduler.StepLR
 * @example
 * const schedule = new StepLR(optimizer, { stepSize: 30, gamma: 0.1 });
 */
export class StepLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: StepLROptions) {
    super("StepLR", optimizer, options);
    const checks = { stepSize: wholeFrom(1), gamma: atLeast(0) };
    const { stepSize, gamma } = optionsOf(this.kind, options, checks, { gamma: 0.1 });
    this.chain((lr, epoch) => (epoch === 0 || epoch % stepSize !== 0 ? lr : lr * gamma));
  }
}

export interface MultiStepLROptions extends ScheduleOptions {
  /** Epochs at which the lr decays, in any order; one that occurs twice counts twice. */
  milestones: Iterable<number>;
  gamma?: number;
}

/**
 * Multiplies the lr by `gamma` at each milestone.
 *
 * lr(e) = base * gamma^(number of milestones <= e)
 *
 * @throws OptError BAD_ARGUMENT for milestones that are not whole numbers or a negative gamma
 * @see torch.optim.lr_scheduler.MultiStepLR
 * @example
 * const schedule = new MultiStepLR(optimizer, { milestones: [30, 80], gamma: 0.1 });
 */
export class MultiStepLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: MultiStepLROptions) {
    super("MultiStepLR", optimizer, options);
    const checks = { milestones: milestonesOf, gamma: atLeast(0) };
    const { milestones, gamma } = optionsOf(this.kind, options, checks, { gamma: 0.1 });
    const decay = (epoch: number) => gamma ** milestones.filter((milestone) => milestone === epoch).length;
    this.chain((lr, epoch) => lr * decay(epoch), decay(0));
  }
}

function milestonesOf(where: string, name: string, milestones: Iterable<number>): number[] {
  const isList = typeof milestones?.[Symbol.iterator] === "function" && typeof milestones !== "string";
  checkValue(isList, where, name, "a list of epochs", milestones, "Pass for example [30, 80].");
  return [...milestones].map((milestone) => wholeNumber(where, "every milestone", milestone, 0));
}

export interface ConstantLROptions extends ScheduleOptions {
  factor?: number;
  /** Epochs for which the factor holds; 0 is for ever, as in PyTorch. */
  totalIters?: number;
}

/**
 * Holds the lr at a fraction of itself for the first epochs.
 *
 * lr(e) = base * factor for e < totalIters, then base
 *
 * @throws OptError BAD_ARGUMENT for a factor outside [0, 1] or totalIters below 1
 * @see torch.optim.lr_scheduler.ConstantLR, which fails at the end of a zero factor where this returns to the base lr
 * @example
 * const schedule = new ConstantLR(optimizer, { factor: 0.5, totalIters: 4 });
 */
export class ConstantLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: ConstantLROptions = {}) {
    super("ConstantLR", optimizer, options);
    const checks = { factor: between(0, 1), totalIters: wholeFrom(0) };
    const { factor, totalIters } = optionsOf(this.kind, options, checks, { factor: 1 / 3, totalIters: 5 });
    this.chain((lr, epoch, index) => {
      if (epoch === 0) return lr * factor;
      if (epoch !== totalIters) return lr;
      return factor === 0 ? this.base(index) : lr * (1 / factor);
    }, factor);
  }
}

export interface LinearLROptions extends ScheduleOptions {
  startFactor?: number;
  endFactor?: number;
  /** Epochs from the first factor to the last; 0 keeps the first, as in PyTorch. */
  totalIters?: number;
}

/**
 * Moves the lr in equal steps from one fraction of itself to another: the usual warm-up.
 *
 * lr(e) = base * (startFactor + (endFactor - startFactor) * min(e, totalIters) / totalIters)
 *
 * @throws OptError BAD_ARGUMENT for a startFactor outside (0, 1], an endFactor outside [0, 1] or totalIters below 1
 * @see torch.optim.lr_scheduler.LinearLR
 * @example
 * const schedule = new LinearLR(optimizer, { startFactor: 0.1, totalIters: 10 });
 */
export class LinearLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: LinearLROptions = {}) {
    super("LinearLR", optimizer, options);
    const checks = { startFactor: startFactorOf, endFactor: between(0, 1), totalIters: wholeFrom(0) };
    const defaults = { startFactor: 1 / 3, endFactor: 1, totalIters: 5 };
    const { startFactor, endFactor, totalIters } = optionsOf(this.kind, options, checks, defaults);
    const rise = endFactor - startFactor;
    this.chain((lr, epoch) => {
      if (epoch === 0) return lr * startFactor;
      return epoch > totalIters ? lr : lr * (1 + rise / (totalIters * startFactor + (epoch - 1) * rise));
    }, startFactor);
  }
}

function startFactorOf(where: string, name: string, value: number): number {
  const fits = isFiniteNumber(value) && value > 0 && value <= 1;
  checkValue(fits, where, name, "above 0 and at most 1", value, "Start from a small factor, not 0.");
  return value;
}

export interface PolynomialLROptions extends ScheduleOptions {
  /** Epochs from the base lr to the end; 0 keeps the base lr, as in PyTorch. */
  totalIters?: number;
  power?: number;
  /** The lr at the end (PaddlePaddle's end_lr). */
  endLr?: number;
  /** Instead of staying at the end, starts again over the next multiple of totalIters (PaddlePaddle's cycle). */
  cycle?: boolean;
}

/**
 * Lowers the lr along a power of the remaining time.
 *
 * lr(e) = endLr + (base - endLr) * (1 - min(e, T) / T)^power; with cycle, T grows to T * max(1, ceil(e / T)) instead
 *
 * @throws OptError BAD_ARGUMENT for totalIters below 1, a power not above 0 or an endLr that is not finite
 * @see torch.optim.lr_scheduler.PolynomialLR (chainable, the defaults); paddle.optimizer.lr.PolynomialDecay (the last
 * two options; with cycle the lr is overwritten)
 * @example
 * const schedule = new PolynomialLR(optimizer, { totalIters: 100, power: 2 });
 */
export class PolynomialLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: PolynomialLROptions = {}) {
    super("PolynomialLR", optimizer, options);
    const iterations = wholeFrom(Object(options).cycle ? 1 : 0);
    const checks = { totalIters: iterations, power: atLeast(0), endLr: finiteNumber, cycle: trueOrFalse };
    const defaults = { totalIters: 5, power: 1, endLr: 0, cycle: false };
    const { totalIters, power, endLr, cycle } = optionsOf(this.kind, options, checks, defaults);
    this.chain((lr, epoch, index) => {
      if (cycle) {
        const total = totalIters * Math.max(1, Math.ceil(epoch / totalIters));
        return (this.base(index) - endLr) * (1 - epoch / total) ** power + endLr;
      }
      if (epoch > totalIters) return lr;
      const remaining = (1 - epoch / totalIters) / (1 - (epoch - 1) / totalIters);
      return (lr - endLr) * remaining ** power + endLr;
    });
  }
}

export interface CosineAnnealingLROptions extends ScheduleOptions {
  /** Epochs from the base lr to the lowest: half a wave. */
  tMax: number;
  etaMin?: number;
  /** The first of these epochs, in which the lr rises linearly from 0 to the base lr. The wave falls over the others. Default 0. */
  warmup?: number;
}

/**
 * Moves the lr along a cosine wave between the base lr and `etaMin`.
 *
 * lr(e) = etaMin + (base - etaMin) * (1 + cos(pi * e / tMax)) / 2, computed from the lr before it, so that it chains.
 * With `warmup`: base * e / warmup for e < warmup, then the wave of (e - warmup) / (tMax - warmup). It overwrites the lr.
 *
 * @throws OptError BAD_ARGUMENT for a tMax below 1, an etaMin that is not finite, or a warmup that is not below tMax
 * @see Loshchilov & Hutter 2017 (SGDR); torch.optim.lr_scheduler.CosineAnnealingLR
 * @example
 * const schedule = new CosineAnnealingLR(optimizer, { tMax: 100, etaMin: 1e-5 });
 */
export class CosineAnnealingLR extends PlannedLR {
  constructor(optimizer: ScheduledOptimizer, options: CosineAnnealingLROptions) {
    super("CosineAnnealingLR", optimizer, options);
    const checks = { tMax: wholeFrom(1), etaMin: finiteNumber, warmup: wholeFrom(0) };
    const { tMax, etaMin, warmup } = optionsOf(this.kind, options, checks, { etaMin: 0, warmup: 0 });
    checkValue(warmup < tMax, this.kind, "warmup", `below tMax (${tMax})`, warmup, "It is a part of tMax.");
    if (warmup > 0) {
      this.overwrite((epoch, index) => {
        if (epoch < warmup) return this.base(index) * (epoch / warmup);
        const wave = 1 + Math.cos((Math.PI * (epoch - warmup)) / (tMax - warmup));
        return etaMin + ((this.base(index) - etaMin) * wave) / 2;
      });
      return;
    }
    const height = (epoch: number) => 1 + Math.cos((Math.PI * epoch) / tMax);
    this.chain((lr, epoch, index) => {
      // One past the bottom the ratio below would divide by zero: the first rise is added instead.
      if ((epoch - 1 - tMax) % (2 * tMax) === 0) {
        return lr + ((this.base(index) - etaMin) * (1 - Math.cos(Math.PI / tMax))) / 2;
      }
      return (height(epoch) / height(epoch - 1)) * (lr - etaMin) + etaMin;
    });
  }
}
