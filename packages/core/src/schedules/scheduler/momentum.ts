// OneCycleLR and CyclicLR move momentum against the lr: beta1 where the optimizer has betas, else its momentum.
import { checkValue } from "../../errors/check-value";
import { isFiniteNumber, perGroup, trueOrFalse } from "./check";
import type { PerGroup, ScheduledGroup, ScheduledOptimizer } from "./scheduled-optimizer";

export interface MomentumOptions {
  /** Moves beta1 (or momentum) the other way. Default: true for a schedule of the lr. */
  cycleMomentum?: boolean;
  baseMomentum?: PerGroup;
  maxMomentum?: PerGroup;
}

export const MOMENTUM_NAMES = ["cycleMomentum", "baseMomentum", "maxMomentum"] as const;

export function momentumOf(group: ScheduledGroup): number | undefined {
  return group.betas?.[0] ?? group.momentum;
}

export function setMomentum(group: ScheduledGroup, value: number): void {
  if (group.betas) group.betas = [value, group.betas[1]];
  else group.momentum = value;
}

/** The lowest and the highest momentum or beta1 of each group, in [0, 1); null where they are left alone. @throws OptError BAD_ARGUMENT */
export function momentumBounds(
  where: string,
  { optimizer, option }: { readonly optimizer: ScheduledOptimizer; readonly option: string },
  [low, high]: readonly [number, number],
  { cycleMomentum = option === "lr", baseMomentum = low, maxMomentum = high }: MomentumOptions,
): [low: number, high: number][] | null {
  if (!trueOrFalse(where, "cycleMomentum", cycleMomentum)) return null;
  const advice = "Pass cycleMomentum: false.";
  checkValue(option === "lr", where, "cycleMomentum", `false for a schedule of ${option}`, true, advice);
  const all = optimizer.groups.every((group) => momentumOf(group) !== undefined);
  const rule = "false for an optimizer without betas or momentum";
  checkValue(all, where, "cycleMomentum", rule, true, advice);
  const checked = (name: string, value: number) => {
    const fits = isFiniteNumber(value) && value >= 0 && value < 1;
    checkValue(fits, where, name, "at least 0 and below 1", value, "Stay below 1, for example 0.95.");
    return value;
  };
  const lows = perGroup<number>(where, "baseMomentum", baseMomentum, optimizer, checked);
  const highs = perGroup<number>(where, "maxMomentum", maxMomentum, optimizer, checked);
  return lows.map((each, index) => [each, highs[index] as number]);
}
