import { givenOptions } from "./scheduler/check";
import { requireParts } from "./scheduler/parts";
import { PlannedLR } from "./scheduler/planned";
import type { ScheduledOptimizer } from "./scheduler/scheduled-optimizer";
import { LRScheduler } from "./scheduler/scheduler";

/**
 * Steps several schedules of one optimizer together, in order: the chainable ones multiply.
 *
 * @throws BAD_ARGUMENT for an empty list, a ReduceLROnPlateau, or schedules of different optimizers
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
