// What a schedule needs of an optimizer, so that it can drive any object that keeps its options in groups.
import { shared } from "../../host/shared";

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
// Beside the group, which takes no other properties than its options.
const initialLrs = /* @__PURE__ */ shared("schedules.initialLr", () => new WeakMap<ScheduledGroup, number>());

/** The learning rate with which a group began, before any schedule changed it. */
export function initialLr(group: ScheduledGroup): number {
  return initialLrs.get(group) ?? group.lr;
}

/** Notes (or corrects) the learning rate with which a group began. */
export function noteInitialLr(group: ScheduledGroup, lr: number): void {
  initialLrs.set(group, lr);
}
