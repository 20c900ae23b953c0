/** Checks of an algorithm's rule and counters. A wrong rule would work on the wrong memory, wrong counters would be lost when saved. */
import { checkValue } from "../errors/check-value";
import { NUMBERS } from "../rule/interpret";
import type { Rule } from "../rule/rule";
import type { Algorithm, BaseOptions, Counters } from "./algorithm";
import { DIRECTION, hasDirection, MASTER, stateKeys } from "./state/state";

/**
 * The first buffer is written and the second, the gradient, is not. State has names of its own. With stages, and only with them, the
 * last buffer is `direction`.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function checkRule(
  { name: where, initialCounters }: Pick<Algorithm<never>, "name" | "initialCounters">,
  rule: Rule,
  hasStages = false,
): void {
  checkValue(typeof rule?.hash === "string", where, "rule()", "made by defineRule", rule);
  const { name, buffers, writes } = rule;
  const isOrdered = buffers.length > 1 && writes.includes(buffers[0]!) && !writes.includes(buffers[1]!);
  const order = "parameter (written), gradient (not), state";
  checkValue(isOrdered, where, `buffers of rule ${name}`, order, buffers);
  const taken = stateKeys(rule).find((key) => key === MASTER || key in initialCounters);
  const free = "no name of a counter or of the float32 copy";
  checkValue(taken === undefined, where, `state of rule ${name}`, free, taken);
  const stages = `${hasStages ? "with" : "without"} a last one ${DIRECTION} that it does not write`;
  checkValue(hasDirection(rule) === hasStages, where, `buffers of rule ${name}`, stages, buffers);
}

/**
 * Counters of the next step: finite numbers under the names of the first ones. Others could not be loaded. Each step calls this, so it
 * makes no closures.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function advanced<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  before: Counters,
  options: Options,
  arithmetic = NUMBERS,
  isNumber: (value: unknown) => boolean = Number.isFinite,
): Counters {
  const { name, initialCounters } = algorithm;
  const { step } = before;
  const counters = algorithm.advance(before, options, arithmetic);
  let holds = Number.isInteger(counters?.step) && counters.step >= 0 && (counters !== before || counters.step === step);
  for (const key in counters) holds &&= key in initialCounters;
  for (const key in initialCounters) holds &&= isNumber(counters[key]);
  checkValue(holds, name, "advance()", "a new object of finite numbers, those of initialCounters", counters);
  return counters;
}
