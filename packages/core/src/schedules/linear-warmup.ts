import { checkValue } from "../errors/check-value";
import { requireOption, requirePart } from "./composites";
import { finiteNumber, givenOptions, perGroup, wholeNumber } from "./scheduler/check";
import { PlannedLR } from "./scheduler/planned";
import {
  initialValue,
  type PerGroup,
  type ScheduledOptimizer,
  type ScheduleOptions,
  setValue,
} from "./scheduler/scheduled-optimizer";
import type { LRScheduler } from "./scheduler/scheduler";

export interface LinearWarmupLROptions extends ScheduleOptions {
  warmupSteps: number;
  /** The first lr, for all groups or for each. */
  startLr?: PerGroup;
  /** The lr that the warm-up aims at; each group's base lr if absent. */
  endLr?: PerGroup | undefined;
  /** The schedule that begins, at its own epoch 0, when the warm-up ends; the base lr if absent. */
  after?: LRScheduler | undefined;
}

/**
 * Raises the lr in equal steps between two given values, then leaves it to another schedule or at the base lr.
 *
 * lr(e) = startLr + (endLr - startLr) * e / warmupSteps for e < warmupSteps, then after(e - warmupSteps) or base
 *
 * @throws OptError BAD_ARGUMENT for warmupSteps below 1, an endLr not above startLr, or an `after` that is no simple schedule of
 * this optimizer
 * @see paddle.optimizer.lr.LinearWarmup
 * @example
 * const after = new CosineAnnealingLR(optimizer, { tMax: 90 });
 * const schedule = new LinearWarmupLR(optimizer, { warmupSteps: 10, startLr: 0, after });
 */
export class LinearWarmupLR extends PlannedLR {
  readonly #warmupSteps: number;
  readonly #after: PlannedLR | undefined;

  constructor(optimizer: ScheduledOptimizer, options: LinearWarmupLROptions) {
    const where = "LinearWarmupLR";
    const names = ["option", "warmupSteps", "startLr", "endLr", "after"] as const;
    const { warmupSteps, startLr = 0, endLr, after } = givenOptions(where, options, names);
    super(where, optimizer, options, after === undefined ? [] : [after]);
    this.#warmupSteps = wholeNumber(where, "warmupSteps", warmupSteps, 1);
    const finite = (name: string, value: number) => finiteNumber(where, name, value);
    const starts = perGroup<number>(where, "startLr", startLr, optimizer, finite);
    const ends = perGroup<number>(where, "endLr", endLr ?? this.bases, optimizer, finite);
    const falling = ends.findIndex((end, index) => !(end > (starts[index] as number)));
    checkValue(falling < 0, where, "endLr", `above startLr = ${starts[falling]}`, ends[falling], "A warm-up rises.");
    if (after !== undefined) {
      requirePart(where, "after", after, optimizer);
      const advice = "A SequentialLR joins several, also with a ReduceLROnPlateau.";
      checkValue(
        after instanceof PlannedLR,
        where,
        "after",
        "a simple schedule",
        `a ${after.constructor.name}`,
        advice,
      );
      requireOption(where, "after", after, this.option);
      after.rewind();
      for (const group of optimizer.groups) setValue(group, this.option, initialValue(group, this.option));
    }
    this.#after = after;
    this.overwrite((epoch, index) => {
      if (epoch >= warmupSteps) return this.base(index);
      const start = this.forGroup(starts, index, "startLr");
      return start + (((ends[index] as number) - start) * epoch) / warmupSteps;
    });
  }

  override step(_metric?: number): void {
    const epoch = this.lastEpoch + 1;
    if (this.#after === undefined || epoch < this.#warmupSteps) {
      super.step();
      return;
    }
    if (epoch === this.#warmupSteps) this.#after.restart();
    else this.#after.step();
    this.record(epoch);
  }
}
