// What SequentialLR, ChainedScheduler and LinearWarmupLR ask of the schedules that they drive.

import { show } from "../../errors/show";
import { ReduceLROnPlateau } from "../reduce-on-plateau";
import { checkValue } from "./check";
import type { ScheduledOptimizer } from "./scheduled-optimizer";
import { LRScheduler } from "./scheduler";

/** Refuses what cannot be driven without a metric or drives another optimizer. */
export function requirePart(where: string, name: string, part: unknown, optimizer: ScheduledOptimizer): void {
  const refuseUnless = (fits: boolean, rule: string, got: unknown, advice: string) =>
    checkValue(fits, where, name, rule, got, advice);
  refuseUnless(part instanceof LRScheduler, "a schedule", part, "Make it first, on the same optimizer.");
  const isPlateau = part instanceof ReduceLROnPlateau;
  refuseUnless(!isPlateau, "a schedule without a metric", "a ReduceLROnPlateau", "Step that one by itself.");
  const isSame = (part as LRScheduler).optimizer === optimizer;
  refuseUnless(isSame, "a schedule of the same optimizer", "one of another", "Make it on this optimizer.");
}

/** A list of at least one such schedule. */
export function requireParts(where: string, parts: readonly LRScheduler[], optimizer: ScheduledOptimizer): void {
  const isList = Array.isArray(parts) && parts.length > 0;
  const got = Array.isArray(parts) ? "none" : show(parts);
  const advice = "Pass for example [warmup, decay].";
  checkValue(isList, where, "schedulers", "a list of at least one schedule", got, advice);
  parts.forEach((part, index) => {
    requirePart(where, `schedulers[${index}]`, part, optimizer);
  });
}
