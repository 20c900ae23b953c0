// The saved form of a schedule and its checks. Options are not in it: they are the program's, progress is the state's.
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { isFiniteNumber } from "./check";

/** Plain JSON: what a schedule needs to go on where it stopped. */
export interface SchedulerState {
  /** The class that wrote it. */
  kind: string;
  lastEpoch: number;
  /** The learning rate with which each group began. */
  baseLrs?: number[];
  /** The learning rate of each group when the state was taken. */
  lr?: number[];
  /** The option that it moves, where that is not the lr. */
  option?: string;
  /** The value of that option with which each group began. */
  baseValues?: number[];
  /** The value of that option in each group when the state was taken. */
  values?: number[];
  /** beta1 or momentum of each group, where the schedule cycles it. */
  momentum?: number[];
  /** States of the schedules inside a composite. */
  schedulers?: SchedulerState[];
  [key: string]: unknown;
}

/** Throws if a state does not fit. */
export function checkState(fits: unknown, where: string, problem: () => string): asserts fits {
  check(fits, "BAD_STATE", where, problem, "Load the stateDict() of a schedule made the same way.");
}

/** Under which names a state has the values of an option. */
export const keysOf = (option: string) =>
  option === "lr"
    ? ({ bases: "baseLrs", values: "lr" } as const)
    : ({ bases: "baseValues", values: "values" } as const);

/** The state as an object written by a schedule of this kind and option. */
export function stateOf(kind: string, option: string, state: unknown): Record<string, unknown> {
  const isObject = typeof state === "object" && state !== null;
  checkState(isObject, kind, () => `state must be an object, got ${show(state)}.`);
  const record = state as Record<string, unknown>;
  checkState(record.kind === kind, kind, () => `state must be of a ${kind}, got kind ${show(record.kind)}.`);
  const { option: saved = "lr" } = record;
  checkState(saved === option, kind, () => `state must be of the option ${option}, got ${show(saved)}.`);
  return record;
}

export function savedInteger(kind: string, state: Record<string, unknown>, key: string, min: number): number {
  const value = state[key];
  const fits = Number.isSafeInteger(value) && (value as number) >= min;
  checkState(fits, kind, () => `${key} must be a whole number of at least ${min}, got ${show(value)}.`);
  return value as number;
}

/** A list of finite numbers, of `min` to `max` entries. */
export function savedNumbers(
  kind: string,
  state: Record<string, unknown>,
  key: string,
  max: number,
  min = max,
): number[] {
  const value = state[key];
  const isList = Array.isArray(value) && value.every(isFiniteNumber);
  checkState(isList, kind, () => `${key} must be a list of finite numbers, got ${show(value)}.`);
  const numbers = value as number[];
  const problem = () => `${key} must have one entry for each of the optimizer's ${max} groups, got ${numbers.length}.`;
  checkState(numbers.length >= min && numbers.length <= max, kind, problem);
  return [...numbers];
}
