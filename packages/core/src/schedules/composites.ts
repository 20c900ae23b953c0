// Schedules that drive others.

import { checkValue } from "../errors/check-value";
import { show } from "../errors/show";
import { ReduceLROnPlateau } from "./reduce-on-plateau";
import { givenOptions, increasing } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import { initialValue, type ScheduledOptimizer, setValue } from "./scheduler/scheduled-optimizer";
import { LRScheduler } from "./scheduler/scheduler";

/** Checks that it is a schedule of this optimizer. */
export function requirePart(where: string, name: string, part: unknown, optimizer: ScheduledOptimizer): void {
  const rejectUnless = (fits: boolean, rule: string, got: unknown, advice: string) =>
    checkValue(fits, where, name, rule, got, advice);
  rejectUnless(part instanceof LRScheduler, "a schedule", part, "Make it first, on the same optimizer.");
  const isSame = (part as LRScheduler).optimizer === optimizer;
  rejectUnless(isSame, "a schedule of the same optimizer", "one of another", "Make it on this optimizer.");
}

/** Checks that a schedule moves the same option as the whole. */
export function requireOption(where: string, name: string, part: LRScheduler, option: string): void {
  const other = part.movedOptions.find((each) => each !== option);
  const advice = "A ChainedScheduler has schedules of several options.";
  checkValue(other === undefined, where, name, `a schedule of ${option}`, other, advice);
}

/** A list of at least one such schedule. */
function requireParts(where: string, parts: readonly LRScheduler[], optimizer: ScheduledOptimizer): void {
  const isList = Array.isArray(parts) && parts.length > 0;
  const got = Array.isArray(parts) ? "none" : show(parts);
  const advice = "Pass for example [warmup, decay].";
  checkValue(isList, where, "schedulers", "a list of at least one schedule", got, advice);
  parts.forEach((part, index) => {
    requirePart(where, `schedulers[${index}]`, part, optimizer);
  });
}

/**
 * Steps several schedules of one optimizer together, in order: the chainable ones multiply. They may move different options.
 *
 * @throws OptError BAD_ARGUMENT for an empty list, a ReduceLROnPlateau beside others of its option, or schedules of different optimizers
 * @see torch.optim.lr_scheduler.ChainedScheduler
 * @example
 * const warmup = new ConstantLR(optimizer, { factor: 0.1, totalIters: 2 });
 * const decay = new ExponentialLR(optimizer, { gamma: 0.9 });
 * const weightDecay = new CosineAnnealingLR(optimizer, { option: "weightDecay", tMax: 100 });
 * const schedule = new ChainedScheduler([warmup, decay, weightDecay]);
 */
export class ChainedScheduler extends LRScheduler {
  constructor(schedulers: readonly LRScheduler[], options: { optimizer?: ScheduledOptimizer } = {}) {
    const given = givenOptions("ChainedScheduler", options, ["optimizer"]);
    const { optimizer = schedulers?.[0]?.optimizer as ScheduledOptimizer } = given;
    requireParts("ChainedScheduler", schedulers, optimizer);
    schedulers.forEach((part, index) => {
      const others = schedulers.filter((other) => other !== part).flatMap((other) => other.movedOptions);
      const isAlone = !(part instanceof ReduceLROnPlateau && others.includes(part.option));
      const rule = `the only schedule of ${part.option}`;
      const advice = "Put it behind the other one in a SequentialLR.";
      checkValue(isAlone, "ChainedScheduler", `schedulers[${index}]`, rule, "one of several", advice);
    });
    super("ChainedScheduler", optimizer, schedulers[0]!, [...schedulers]);
  }

  override step(metric?: number): void {
    this.wholly(() => {
      if (metric !== undefined) this.observe(metric);
      for (const part of this.parts) if (!(part instanceof ReduceLROnPlateau)) part.step();
    });
    this.record(this.lastEpoch + 1);
  }

  override observe(metric: number): void {
    super.observe(metric);
    for (const part of this.parts) part.observe(metric);
    this.record(this.lastEpoch);
  }

  /** Whether a SequentialLR can begin with it. @internal */
  get canBegin(): boolean {
    return this.parts.every((part) => part instanceof PlannedLR);
  }

  override rewind(): void {
    super.rewind();
    for (const part of this.parts) part.rewind();
  }

  /** Epoch 0 is an ordinary step of each part, as PyTorch does it: an ExponentialLR here has its first factor at once. @internal */
  begin(): void {
    this.step();
  }
}

export interface SequentialLROptions {
  /** Schedules of the same optimizer, in the order of their turns. */
  schedulers: readonly LRScheduler[];
  /** Epochs at which the next one takes over, increasing: one less than schedulers. */
  milestones: readonly number[];
}

/**
 * Runs schedules one after the other; each starts at its own epoch 0, from the base lr, at its milestone.
 *
 * A `ReduceLROnPlateau` may follow a warm-up. `step()` counts towards milestones, `observe(metric)` is for the plateau once its turn
 * has come, and `step(metric)` does both. So a warm-up may go by steps and the plateau by validations.
 *
 * @throws OptError BAD_ARGUMENT for a wrong number of milestones, milestones that do not increase, a ReduceLROnPlateau at the start, a
 * schedule of another optimizer or option, or a composite that PyTorch cannot restart either
 * @see torch.optim.lr_scheduler.SequentialLR, which takes no ReduceLROnPlateau
 * @example
 * const warmup = new LinearLR(optimizer, { startFactor: 0.1, totalIters: 5 });
 * const decay = new CosineAnnealingLR(optimizer, { tMax: 95 });
 * const schedule = new SequentialLR(optimizer, { schedulers: [warmup, decay], milestones: [5] });
 * @example
 * const rise = new LinearLR(optimizer, { startFactor: 0.01, totalIters: 500 });
 * const plateau = new ReduceLROnPlateau(optimizer, { patience: 3 });
 * const both = new SequentialLR(optimizer, { schedulers: [rise, plateau], milestones: [500] });
 * both.step(); // after each batch
 * both.observe(0.25); // after each validation: its loss
 */
export class SequentialLR extends LRScheduler {
  readonly #milestones: readonly number[];

  constructor(optimizer: ScheduledOptimizer, options: SequentialLROptions) {
    const { schedulers, milestones } = givenOptions("SequentialLR", options, ["schedulers", "milestones"]);
    requireParts("SequentialLR", schedulers, optimizer);
    schedulers.forEach((part, index) => {
      requireRestartable(part, index);
      requireOption("SequentialLR", `schedulers[${index}]`, part, schedulers[0]!.option);
    });
    super("SequentialLR", optimizer, schedulers[0]!, [...schedulers]);
    this.#milestones = increasing("SequentialLR", "milestones", milestones);
    const fits = milestones.length === schedulers.length - 1;
    const rule = `a list of ${schedulers.length - 1}, one less than schedulers`;
    const advice = "Name the epoch at which each next one begins.";
    checkValue(fits, "SequentialLR", "milestones", rule, milestones, advice);
    for (const group of optimizer.groups) setValue(group, this.option, initialValue(group, this.option));
    for (const part of this.parts) part.rewind();
    const first = this.parts[this.#activeAt(0)] as PlannedLR | ChainedScheduler | ReduceLROnPlateau;
    if (first instanceof ReduceLROnPlateau) first.restart();
    else first.begin();
    this.record(0);
  }

  override step(metric?: number): void {
    const epoch = this.lastEpoch + 1;
    const active = this.#activeAt(epoch);
    const part = this.parts[active] as LRScheduler;
    this.wholly(() => {
      if (metric !== undefined) this.observe(metric);
      if (active > 0 && this.#milestones[active - 1] === epoch) (part as PlannedLR | ReduceLROnPlateau).restart();
      else if (!(part instanceof ReduceLROnPlateau)) part.step();
    });
    this.record(epoch);
  }

  override observe(metric: number): void {
    super.observe(metric);
    this.parts[this.#activeAt(this.lastEpoch)]!.observe(metric);
    this.record(this.lastEpoch);
  }

  #activeAt(epoch: number): number {
    return this.#milestones.filter((milestone) => milestone <= epoch).length;
  }
}

function requireRestartable(part: LRScheduler, index: number): void {
  const isFirst = part instanceof ChainedScheduler && part.canBegin;
  const fits = part instanceof PlannedLR || (index === 0 ? isFirst : part instanceof ReduceLROnPlateau);
  const rule = index === 0 ? "a simple or chained schedule" : "a simple schedule";
  const advice = "Put a ChainedScheduler first; list the schedules of a SequentialLR here themselves.";
  checkValue(fits, "SequentialLR", `schedulers[${index}]`, rule, `a ${part.constructor.name}`, advice);
}
