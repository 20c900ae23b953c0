/** Layers that behave differently in training say so to recordings. */
import { check, guardReplays } from "@opt/core";
import type { Module } from "./module";

/** Refuses replays of a recorded step after the module has left or entered training. @throws OptError BAD_STATE, in a replay */
export function guardTraining(module: Module): void {
  const { training } = module;
  const { name } = module.constructor;
  const switched = () => `training was ${training} when the step was recorded, and is ${module.training}.`;
  guardReplays(() => check(module.training === training, "BAD_STATE", name, switched, "Record the step again."));
}
