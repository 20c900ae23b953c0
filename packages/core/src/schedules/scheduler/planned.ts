import { initialLr, noteInitialLr } from "./scheduled-optimizer";
import { LRScheduler } from "./scheduler";

/**
 * A schedule that follows the epoch alone, not a metric, in PyTorch's chainable form: it changes the lr it finds, so
 * several schedules on one optimizer multiply. A group added later takes part unless the formula needs its base lr.
 */
export abstract class PlannedLR extends LRScheduler {
  /** lr of group `index` at `epoch`, from what it is now. */
  protected abstract nextLr(epoch: number, index: number): number;

  /** lr of group `index` when the schedule is made. */
  protected firstLr(index: number): number {
    return this.presentLr(index);
  }

  /** lr of group `index` when the schedule takes over from another. */
  protected restartLr(index: number): number {
    return this.baseLr(index);
  }

  override step(_metric?: number): void {
    const epoch = this.lastEpoch + 1;
    this.moveTo(epoch, (index) => this.nextLr(epoch, index));
  }

  /** Sets epoch 0 from the lr that the groups have: how a schedule starts. @internal */
  begin(): void {
    for (const group of this.optimizer.groups) noteInitialLr(group, initialLr(group));
    this.moveTo(0, (index) => this.firstLr(index));
  }

  /** Sets epoch 0 from the base lr: how a schedule takes over from another. @internal */
  restart(): void {
    this.moveTo(0, (index) => this.restartLr(index));
  }

  protected presentLr(index: number): number {
    return this.optimizer.groups[index]?.lr as number;
  }

  /** lr with which the group began. */
  protected baseLr(index: number): number {
    return this.forGroup(this.baseLrs, index, "base lr");
  }
}

/** A schedule whose lr is a function of the epoch and the base lr: it overwrites what it finds. */
export abstract class ClosedFormLR extends PlannedLR {
  protected abstract lrAt(epoch: number, index: number): number;

  protected override nextLr(epoch: number, index: number): number {
    return this.lrAt(epoch, index);
  }

  protected override firstLr(index: number): number {
    return this.lrAt(0, index);
  }

  protected override restartLr(index: number): number {
    return this.lrAt(0, index);
  }
}
