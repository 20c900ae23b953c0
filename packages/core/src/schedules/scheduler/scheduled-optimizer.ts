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

/** What all schedules of one option take. */
export interface ScheduleOptions {
  /** The option of the optimizer's groups that it moves, a number: for example "weightDecay". Default "lr". */
  readonly option?: string | undefined;
}

/** An optimizer, as far as a schedule sees it. `@opt/core`'s `Optimizer` is one; so is `{ groups: [{ lr: 0.1 }] }`. */
export interface ScheduledOptimizer {
  readonly groups: readonly ScheduledGroup[];
}

/** The value that a group has of an option. */
export function currentValue(group: ScheduledGroup, option: string): number {
  return (group as unknown as Record<string, number>)[option]!;
}

export function setValue(group: ScheduledGroup, option: string, value: number): void {
  (group as unknown as Record<string, number>)[option] = value;
}

// The first schedule notes where a group started; later ones on the same group start from there too: PyTorch's initial_lr.
// Beside the group, which takes no other properties than its options.
const initialValues = /* @__PURE__ */ shared(
  "schedules.initialValues",
  () => new WeakMap<ScheduledGroup, Record<string, number>>(),
);

/** The value with which a group began, before any schedule changed it. */
export function initialValue(group: ScheduledGroup, option: string): number {
  return initialValues.get(group)?.[option] ?? currentValue(group, option);
}

/** Notes (or corrects) the value with which a group began. */
export function noteInitialValue(group: ScheduledGroup, option: string, value: number): void {
  initialValues.set(group, { ...initialValues.get(group), [option]: value });
}
