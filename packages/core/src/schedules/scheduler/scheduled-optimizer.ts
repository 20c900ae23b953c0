// What a schedule needs of an optimizer, so that it can drive any object that keeps its options in groups.

/** One number for all groups, or one for each. */
export type PerGroup = number | readonly number[];

/** One group of parameters, as far as a schedule sees it. */
export interface ScheduledGroup {
  lr: number;
  betas?: readonly [number, number] | undefined;
  momentum?: number | undefined;
}

/** An optimizer, as far as a schedule sees it. `@opt/core`'s `Optimizer` is one; so is `{ groups: [{ lr: 0.1 }] }`. */
export interface ScheduledOptimizer {
  readonly groups: readonly ScheduledGroup[];
}

// The first schedule notes where a group started; later ones on the same group start from there too, as in PyTorch.
// A symbol keeps the note out of the optimizer's own options and state.
const INITIAL_LR = Symbol.for("@opt/core/schedules/initialLr");

type NotedGroup = ScheduledGroup & { [INITIAL_LR]?: number };

/** The learning rate with which a group began, before any schedule changed it. */
export function initialLr(group: ScheduledGroup): number {
  return (group as NotedGroup)[INITIAL_LR] ?? group.lr;
}

/** Notes (or corrects) the learning rate with which a group began. */
export function noteInitialLr(group: ScheduledGroup, lr: number): void {
  Object.defineProperty(group, INITIAL_LR, { value: lr, writable: true, configurable: true, enumerable: false });
}
