import { ChainedScheduler } from "./chained";
import { checkValue, givenOptions, increasing } from "./scheduler/check";
import { requireParts } from "./scheduler/parts";
import { PlannedLR } from "./scheduler/planned";
import { initialLr, type ScheduledOptimizer } from "./scheduler/scheduled-optimizer";
import { LRScheduler } from "./scheduler/scheduler";

export interface SequentialLROptions {
  /** Schedules of the same optimizer, in the order of their turns. */
  schedulers: readonly LRScheduler[];
  /** Epochs at which the next one takes over, increasing: one less than schedulers. */
  milestones: readonly number[];
}

/**
 * Runs schedules one after the other; each starts at its own epoch 0, from the base lr, at its milestone.
 *
 * @throws BAD_ARGUMENT for a wrong number of milestones, milestones that do not increase, a ReduceLROnPlateau, a
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
