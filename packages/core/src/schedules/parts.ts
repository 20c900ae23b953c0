// What SequentialLR, ChainedScheduler and LinearWarmupLR ask of the schedules that they drive.
import { refuse, shown } from "./check";
import { ReduceLROnPlateau } from "./reduce-on-plateau";
import type { ScheduledOptimizer } from "./scheduled-optimizer";
import { LRScheduler } from "./scheduler";

/** Refuses what cannot be driven without a metric or drives another optimizer. */
export function requirePart(where: string, name: string, part: unknown, optimizer: ScheduledOptimizer): void {
  if (!(part instanceof LRScheduler)) {
    throw refuse(where, name, "a schedule", part, "Make it first, on the same optimizer.");
  }
  if (part instanceof ReduceLROnPlateau) {
    throw refuse(where, name, "a schedule without a metric", "a ReduceLROnPlateau", "Step that one by itself.");
  }
  if (part.optimizer !== optimizer) {
    throw refuse(where, name, "a schedule of the same optimizer", "one of another", "Make it on this optimizer.");
  }
}

/** A list of at least one such schedule. */
export function requireParts(where: string, parts: readonly LRScheduler[], optimizer: ScheduledOptimizer): void {
  if (!Array.isArray(parts) || parts.length === 0) {
    const got = Array.isArray(parts) ? "none" : shown(parts);
    throw refuse(where, "schedulers", "a list of at least one schedule", got, "Pass for example [warmup, decay].");
  }
  parts.forEach((part, index) => {
    requirePart(where, `schedulers[${index}]`, part, optimizer);
  });
}
