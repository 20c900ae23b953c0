/** What an optimizer asks of the rule that its algorithm gives: refused before a launch would work on the wrong memory. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import type { Rule } from "../rule/rule";
import type { Algorithm } from "./algorithm";
import { DIRECTION, hasDirection, MASTER, stateKeys } from "./state/state";

const sound = new WeakSet<Rule>();

/**
 * A rule of at least two buffers that writes its first; state whose names are free; `direction` last where there are stages, and only there.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function checkRule(
  algorithm: Pick<Algorithm<never>, "name" | "initialCounters">,
  rule: Rule,
  hasStages = false,
): void {
  if (sound.has(rule)) return;
  checkNew(algorithm, rule, hasStages);
  sound.add(rule);
}

function checkNew(
  { name: where, initialCounters }: Pick<Algorithm<never>, "name" | "initialCounters">,
  rule: Rule,
  hasStages: boolean,
): void {
  const isRule = typeof rule === "object" && rule !== null && typeof rule.hash === "string";
  const noRule = () => `rule() must give a rule, got ${show(rule)}.`;
  check(isRule, "BAD_ARGUMENT", where, noRule, "Make it with defineRule.");
  const { name, buffers, writes } = rule;
  const writesFirst = buffers.length > 1 && writes.includes(buffers[0]!);
  const order = () =>
    `rule ${name} must write its first buffer, got ${show(buffers)}, of which it writes ${show(writes)}.`;
  check(writesFirst, "BAD_ARGUMENT", where, order, "The parameter comes first, the gradient second, then state.");
  const taken = stateKeys(rule).find((key) => key === MASTER || key in initialCounters);
  const clash = () =>
    `rule ${name} has state ${taken}, which is the name of ${taken === MASTER ? "the float32 copy" : "a counter"}.`;
  check(taken === undefined, "BAD_ARGUMENT", where, clash, "Name the buffer otherwise.");
  const stages = () =>
    hasStages
      ? `rule ${name} must end with the buffer ${DIRECTION} and not write it, got ${show(buffers)}.`
      : `rule ${name} ends with the buffer ${DIRECTION}, which nothing writes.`;
  check(hasDirection(rule) === hasStages, "BAD_ARGUMENT", where, stages, "Stages write it: see StagedOptimizer.");
}
