// Checks shared by the schedules. Each returns the value that passed, or throws BAD_ARGUMENT.
import { checkValue } from "../../errors/check-value";
import { checkOptions } from "../../errors/options";
import type { ScheduledOptimizer, ScheduleOptions } from "./scheduled-optimizer";

export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

/** A metric, as `step` and `observe` take it. */
export function checkMetric(where: string, metric: unknown): asserts metric is number {
  const advice = "Pass for example the validation loss.";
  checkValue(typeof metric === "number", where, "metric", "a number", metric, advice);
}

/** A finite number, within [min, max] where given. */
export function finiteNumber(where: string, name: string, value: unknown, min = -Infinity, max = Infinity): number {
  const range = min === -Infinity ? "" : max === Infinity ? ` of at least ${min}` : ` from ${min} to ${max}`;
  const fits = isFiniteNumber(value) && value >= min && value <= max;
  checkValue(fits, where, name, `a finite number${range}`, value, "Pass a plain number in that range.");
  return value as number;
}

/** A finite number above zero. */
export function positiveNumber(where: string, name: string, value: unknown): number {
  checkValue(
    isFiniteNumber(value) && value > 0,
    where,
    name,
    "a finite number above 0",
    value,
    "Pass a positive number.",
  );
  return value as number;
}

/** A whole number of at least `min`. */
export function wholeNumber(where: string, name: string, value: unknown, min: number): number {
  const fits = Number.isSafeInteger(value) && (value as number) >= min;
  checkValue(fits, where, name, `a whole number of at least ${min}`, value, "Count steps in whole numbers.");
  return value as number;
}

/** One of a few words. */
export function oneOf<Word extends string>(where: string, name: string, value: Word, words: readonly Word[]): Word {
  const quoted = words.map((word) => `"${word}"`).join(", ");
  checkValue(words.includes(value), where, name, `one of ${quoted}`, value, "Choose one of these.");
  return value;
}

/** A value given once for all groups or once for each; returns one per group, each passed through `check`. */
export function perGroup<Value>(
  where: string,
  name: string,
  value: Value | readonly Value[],
  optimizer: ScheduledOptimizer,
  check: (name: string, one: Value) => Value,
): Value[] {
  const count = optimizer.groups.length;
  if (!Array.isArray(value)) return new Array<Value>(count).fill(check(name, value as Value));
  const rule = `one value or ${count}, the number of groups`;
  checkValue(value.length === count, where, name, rule, value, "Give one value for all groups, or one for each.");
  return value.map((one, index) => check(`${name}[${index}]`, one));
}

/** The options object itself: a plain object with known names only. */
export function givenOptions<Options extends object>(
  where: string,
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  checkOptions(where, options, Object.fromEntries(names.map((name) => [name, "any"])));
  return options;
}

type Own<Options> = Exclude<keyof Options, "option">;

/**
 * A schedule's own options, checked in the order of `checks`: a function for each, which returns the value. Options without a default
 * must be given.
 */
export function optionsOf<
  Options extends ScheduleOptions,
  Checks extends { [Name in Own<Options>]-?: (where: string, name: string, value: never) => unknown },
>(
  where: string,
  options: Options,
  checks: Checks,
  defaults: Partial<Options> = {},
): { [Name in Own<Options>]-?: ReturnType<Checks[Name]> } {
  const names = Object.keys(checks) as (Own<Options> & string)[];
  const given = givenOptions(where, options, ["option", ...names]);
  const values = names.map((name) => [
    name,
    checks[name](where, name, (given[name] === undefined ? defaults[name] : given[name]) as never),
  ]);
  return Object.fromEntries(values);
}

/** Checks for finite numbers, and for whole ones. */
export const atLeast = (min: number) => between(min, Infinity);
export const between = (min: number, max: number) => (where: string, name: string, value: unknown) =>
  finiteNumber(where, name, value, min, max);
export const wholeFrom = (min: number) => (where: string, name: string, value: unknown) =>
  wholeNumber(where, name, value, min);

/** A switch. */
export function trueOrFalse(where: string, name: string, value: unknown): boolean {
  checkValue(typeof value === "boolean", where, name, "true or false", value, "Leave it out for the default.");
  return value as boolean;
}

/** A list of whole numbers, each above the one before. */
export function increasing(where: string, name: string, list: unknown): number[] {
  const fits = (value: unknown, index: number, all: unknown[]) =>
    Number.isSafeInteger(value) &&
    (value as number) >= 0 &&
    (index === 0 || (value as number) > Number(all[index - 1]));
  const isIncreasing = Array.isArray(list) && list.every(fits);
  const advice = "Sort them and leave out repetitions.";
  checkValue(isIncreasing, where, name, "an increasing list of whole numbers", list, advice);
  return [...(list as number[])];
}
