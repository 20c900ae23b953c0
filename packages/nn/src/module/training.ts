/** Layers that compute with numbers of their own say so to recordings. */
import { check, guardReplays, show } from "@opt/core";
import type { Module } from "./module";

/**
 * Refuses replays of a recorded step after the module has left or entered training, or got another value of one of these properties.
 *
 * @throws OptError BAD_STATE, in a replay
 */
export function guardSettings<Layer extends Module>(
  module: Layer,
  ...settings: readonly (keyof Layer & string)[]
): void {
  const { name } = module.constructor;
  const recorded = (["training", ...settings] as const).map((key) => [key, module[key]] as const);
  guardReplays(() => {
    for (const [key, before] of recorded) {
      const other = () => `${key} was ${show(before)} when the step was recorded, and is ${show(module[key])}.`;
      check(module[key] === before, "BAD_STATE", name, other, "Record the step again.");
    }
  });
}
