// OneCycleLR and CyclicLR move momentum against the lr: beta1 where the optimizer has betas, else its momentum.
import { finiteNumber, refuse } from "./check";
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
  if (optimizer.groups.every((group) => momentumOf(group) !== undefined)) return;
  const rule = "false for an optimizer without betas or momentum";
  throw refuse(where, "cycleMomentum", rule, true, "Pass cycleMomentum: false.");
}

/** A momentum or beta1, in [0, 1]. */
export function momentumValue(where: string): (name: string, value: number) => number {
  return (name, value) => finiteNumber(where, name, value, 0, 1);
}
