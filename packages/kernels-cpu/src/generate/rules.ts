/** The rules that are compiled ahead: every variant of every algorithm package of the workspace, and the one that tests use. */
import { adamRules } from "@opt/adam-amsgrad/rules";
import type { Rule } from "@opt/core";
import { nadamRules } from "@opt/nadam/rules";
import { everyOp } from "../testing/rules";

/** A new optimizer adds its list here. */
export const builtRules: readonly Rule[] = [...adamRules, ...nadamRules, everyOp];

/** The rules that algorithms of earlier releases bring, by package and series: kernels are kept for them. */
export function releasedRules(record: Record<string, Record<string, Rule[]>>): Rule[] {
  return Object.values(record).flatMap((series) => Object.values(series).flat());
}
