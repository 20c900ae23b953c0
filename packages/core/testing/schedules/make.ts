/** Schedules by their names, for tables that are data. */
import * as schedules from "../../src/schedules/index";

const classes = new Map<string, unknown>(Object.entries(schedules));

/** `new StepLR(optimizer, options)` for "StepLR". A ChainedScheduler takes its schedules in the place of the optimizer. */
export function make(optimizer: unknown, name: string, options?: unknown): schedules.LRScheduler {
  const Schedule = classes.get(name) as new (optimizer: unknown, options?: unknown) => schedules.LRScheduler;
  return new Schedule(optimizer, options);
}
