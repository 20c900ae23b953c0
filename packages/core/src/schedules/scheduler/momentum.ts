// OneCycleLR and CyclicLR move momentum against the lr: beta1 where the optimizer has betas, else its momentum.
import { checkValue, isFiniteNumber } from "./check";
import type { ScheduledGroup, ScheduledOptimizer } from "./scheduled-optimizer";

export function momentumOf(group: ScheduledGroup): number | undefined {
  return group.betas?.[0] ?? group.momentum;
}

export function setMomentum(group: ScheduledGroup, value: number): void {
  if (group.betas) group.betas = [value, group.betas[1]];
  else group.momentum = value;
}

/** Refuses to cycle the momentum of an optimizer that has none. */
export function requireMomentum(where: string, optimizer: ScheduledOptimizer): void {
  const all = optimizer.groups.every((group) => momentumOf(group) !== undefined);
  const rule = "false for an optimizer without betas or momentum";
  checkValue(all, where, "cycleMomentum", rule, true, "Pass cycleMomentum: false.");
}

/** A check for a momentum or beta1, in [0, 1). */
export function momentumValue(where: string): (name: string, value: number) => number {
  return (name, value) => {
    const fits = isFiniteNumber(value) && value >= 0 && value < 1;
    checkValue(fits, where, name, "at least 0 and below 1", value, "Stay below 1, for example 0.95.");
    return value;
  };
}
