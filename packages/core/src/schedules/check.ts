// Refusals shared by the schedules: each returns the value that passed, or throws BAD_ARGUMENT.
import { OptError } from "../errors";
import type { ScheduledOptimizer } from "./scheduled-optimizer";

/** How a value is shown in a message. */
export function shown(value: unknown): string {
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? `[${value.map(shown).join(", ")}]` : "an object";
}

export function refuse(where: string, name: string, rule: string, value: unknown, advice: string): OptError {
  return new OptError("BAD_ARGUMENT", where, `${name} must be ${rule}, got ${shown(value)}.`, advice);
}

export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

/** A finite number, within [min, max] where given. */
export function finiteNumber(where: string, name: string, value: unknown, min = -Infinity, max = Infinity): number {
  if (isFiniteNumber(value) && value >= min && value <= max) return value;
  const range = min === -Infinity ? "" : max === Infinity ? ` of at least ${min}` : ` from ${min} to ${max}`;
  throw refuse(where, name, `a finite number${range}`, value, "Pass a plain number in that range.");
}

/** A finite number above zero. */
export function positiveNumber(where: string, name: string, value: unknown): number {
  if (isFiniteNumber(value) && value > 0) return value;
  throw refuse(where, name, "a finite number above 0", value, "Pass a positive number.");
}

/** A whole number of at least `min`. */
export function wholeNumber(where: string, name: string, value: unknown, min: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min) return value as number;
  throw refuse(where, name, `a whole number of at least ${min}`, value, "Count steps in whole numbers.");
}

/** One of a few words. */
export function oneOf<Word extends string>(where: string, name: string, value: Word, words: readonly Word[]): Word {
  if (words.includes(value)) return value;
  const quoted = words.map((word) => `"${word}"`).join(", ");
  throw refuse(where, name, `one of ${quoted}`, value, "Choose one of these.");
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
  if (value.length !== count) {
    const advice = "Give one value for all groups, or one for each.";
    throw refuse(where, name, `one value or ${count}, the number of groups`, value, advice);
  }
  return value.map((one, index) => check(`${name}[${index}]`, one));
}

/** The options object itself: absent, or an object. */
export function givenOptions<Options extends object>(where: string, options: Options): Options {
  if (typeof options === "object" && options !== null) return options;
  throw refuse(where, "options", "an object", options, `Write new ${where}(optimizer, { ... }).`);
}

/** A list of whole numbers, each above the one before. */
export function increasing(where: string, name: string, list: unknown): number[] {
  const fits = (value: unknown, index: number, all: unknown[]) =>
    Number.isSafeInteger(value) &&
    (value as number) >= 0 &&
    (index === 0 || (value as number) > Number(all[index - 1]));
  if (Array.isArray(list) && list.every(fits)) return [...list];
  throw refuse(where, name, "an increasing list of whole numbers", list, "Sort them and leave out repetitions.");
}
