import { initialValue, noteInitialValue } from "./scheduled-optimizer";
import { LRScheduler } from "./scheduler";

/** lr of group `index` at `epoch`. */
type LrAt = (epoch: number, index: number) => number;

/**
 * A schedule that follows the epoch alone, not a metric: by a closed form, which overwrites the lr, or in PyTorch's chainable form,
 * which changes the lr it finds. Several chainable schedules on one optimizer multiply. A group added later takes part unless the
 * formula needs its base lr.
 */
export abstract class PlannedLR extends LRScheduler {
  #next!: LrAt;
  #first!: (index: number) => number;
  #restart!: (index: number) => number;

  /** Starts a schedule with a closed form. */
  protected overwrite(lrAt: LrAt): void {
    this.#next = lrAt;
    this.#first = this.#restart = (index) => lrAt(0, index);
    this.begin();
  }

  /**
   * Starts a schedule that changes the lr it finds.
   *
   * @param next the lr at an epoch from the lr before it
   * @param start factor of the lr at epoch 0
   */
  protected chain(next: (lr: number, epoch: number, index: number) => number, start = 1): void {
    this.#next = (epoch, index) => next(this.present(index), epoch, index);
    this.#first = (index) => this.present(index) * start;
    this.#restart = (index) => this.base(index) * start;
    this.begin();
  }

  override step(_metric?: number): void {
    this.stepTo(this.lastEpoch + 1);
  }

  protected stepTo(epoch: number): void {
    this.moveTo(epoch, (index) => this.#next(epoch, index));
  }

  /** Sets epoch 0 from the lr that the groups have: how a schedule starts. @internal */
  begin(): void {
    for (const group of this.optimizer.groups) noteInitialValue(group, this.option, initialValue(group, this.option));
    this.moveTo(0, this.#first);
  }

  /** Sets epoch 0 from the base lr: how a schedule takes over from another. @internal */
  restart(): void {
    this.moveTo(0, this.#restart);
  }
}
