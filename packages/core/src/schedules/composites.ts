// Schedules that drive others.
import { show } from "../errors/show";
import { ReduceLROnPlateau } from "./reduce-on-plateau";
import { checkValue, givenOptions, increasing } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import { initialLr, type ScheduledOptimizer } from "./scheduler/scheduled-optimizer";
import { LRScheduler } from "./scheduler/scheduler";

/** Checks that a schedule needs no metric and drives this optimizer. */
export function requirePart(where: string, name: string, part: unknown, optimizer: ScheduledOptimizer): void {
  const rejectUnless = (fits: boolean, rule: string, got: unknown, advice: string) =>
    checkValue(fits, where, name, rule, got, advice);
  rejectUnless(part instanceof LRScheduler, "a schedule", part, "Make it first, on the same optimizer.");
  const isPlateau = part instanceof ReduceLROnPlateau;
  rejectUnless(!isPlateau, "a schedule without a metric", "a ReduceLROnPlateau", "Step that one by itself.");
  const isSame = (part as LRScheduler).optimizer === optimizer;
  rejectUnless(isSame, "a schedule of the same optimizer", "one of another", "Make it on this optimizer.");
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
 * Steps several schedules of one optimizer together, in order: the chainable ones multiply.
 *
 * @throws OptError BAD_ARGUMENT for an empty list, a ReduceLROnPlateau, or schedules of different optimizers
 * @see torch.optim.lr_scheduler.ChainedScheduler
 * @example
 * const warmup = new ConstantLR(optimizer, { factor: 0.1, totalIters: 2 });
 * const decay = new ExponentialLR(optimizer, { gamma: 0.9 });
 * const schedule = new ChainedScheduler([warmup, decay]);
 */
export class ChainedScheduler extends LRScheduler {
  constructor(schedulers: readonly LRScheduler[], options: { optimizer?: ScheduledOptimizer } = {}) {
    const given = givenOptions("ChainedScheduler", options, ["optimizer"]);
    const { optimizer = schedulers?.[0]?.optimizer as ScheduledOptimizer } = given;
    requireParts("ChainedScheduler", schedulers, optimizer);
    super("ChainedScheduler", optimizer, [...schedulers]);
  }

  override step(_metric?: number): void {
    const restore = this.snapshot();
    try {
      for (const part of this.parts) part.step();
    } catch (error) {
      restore();
      throw error;
    }
    this.record(this.lastEpoch + 1);
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
 * @throws OptError BAD_ARGUMENT for a wrong number of milestones, milestones that do not increase, a ReduceLROnPlateau, a
 * schedule of another optimizer, or a composite that PyTorch cannot restart either
 * @see torch.optim.lr_scheduler.SequentialLR
 * @example
 * const warmup = new LinearLR(optimizer, { startFactor: 0.1, totalIters: 5 });
 * const decay = new CosineAnnealingLR(optimizer, { tMax: 95 });
 * const schedule = new SequentialLR(optimizer, { schedulers: [warmup, decay], milestones: [5] });
 */
export class SequentialLR extends LRScheduler {
  readonly #milestones: readonly number[];

  constructor(optimizer: ScheduledOptimizer, options: SequentialLROptions) {
    const { schedulers, milestones } = givenOptions("SequentialLR", options, ["schedulers", "milestones"]);
    requireParts("SequentialLR", schedulers, optimizer);
    schedulers.forEach(requireRestartable);
    super("SequentialLR", optimizer, [...schedulers]);
    this.#milestones = increasing("SequentialLR", "milestones", milestones);
    const fits = milestones.length === schedulers.length - 1;
    const rule = `a list of ${schedulers.length - 1}, one less than schedulers`;
    const advice = "Name the epoch at which each next one begins.";
    checkValue(fits, "SequentialLR", "milestones", rule, milestones, advice);
    for (const group of optimizer.groups) group.lr = initialLr(group);
    for (const part of this.parts) part.rewind();
    (this.parts[this.#activeAt(0)] as PlannedLR | ChainedScheduler).begin();
    this.record(0);
  }

  override step(_metric?: number): void {
    const epoch = this.lastEpoch + 1;
    const active = this.#activeAt(epoch);
    const part = this.parts[active] as LRScheduler;
    if (active > 0 && this.#milestones[active - 1] === epoch) (part as PlannedLR).restart();
    else part.step();
    this.record(epoch);
  }

  #activeAt(epoch: number): number {
    return this.#milestones.filter((milestone) => milestone <= epoch).length;
  }
}

function requireRestartable(part: LRScheduler, index: number): void {
  const fits = part instanceof PlannedLR || (index === 0 && part instanceof ChainedScheduler && part.canBegin);
  const rule = index === 0 ? "a simple or chained schedule" : "a simple schedule";
  const advice = "Put a ChainedScheduler first; list the schedules of a SequentialLR here themselves.";
  checkValue(fits, "SequentialLR", `schedulers[${index}]`, rule, `a ${part.constructor.name}`, advice);
}
