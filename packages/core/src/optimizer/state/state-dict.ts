/** Optimizer state as plain data: PyTorch's keys, parameters by name. */

import { keep, tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { isPlainObject, show } from "../../errors/show";
import { cast, clone, move } from "../../ops";
import type { Rule } from "../../rule/rule";
import { checkNotSummary } from "../../tensor/summary";
import { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { sameShape, showShape } from "../../values/shape";
import type { Counters, GroupOptions } from "../algorithm";
import type { Slot } from "../slot";
import { is16Bit, MASTER, type ParameterState, statePacking, storedState } from "./state";

/** One parameter's state: `step`, other numbers (mu_product), and tensors (exp_avg, exp_avg_sq, max_exp_avg_sq). */
export type ParameterStateDict = { step: number } & { [key: string]: number | Tensor };

export interface OptimizerState {
  /** The options of each group, and its parameters by name. */
  groups: ({ params: string[] } & Record<string, unknown>)[];
  state: Record<string, ParameterStateDict>;
}

/** Tensors and counters are the live ones, not copies: save or clone them before the next step. Packed state comes as copies in float32. */
export function parameterStateDict(slot: Slot): ParameterStateDict {
  const state = slot.state!;
  const dict = {};
  for (const name of Object.keys(state.counters)) {
    const get = () => {
      slot.ahead?.settle(); // replays have counted on
      return state.counters[name];
    };
    Object.defineProperty(dict, name, { enumerable: true, get });
  }
  const tensors = [...state.tensors].map(([key, tensor]) => [key, tensor.packed?.unpacked() ?? tensor]);
  return Object.assign(dict, Object.fromEntries(tensors)) as ParameterStateDict;
}

const OTHER_STATE = "It is of another optimizer or other options (amsgrad) or damaged.";
const SAME_GROUPS = "Build it with the same groups.";

/** The saved name of every parameter: equal names, or by position where one side has only numbers for names. @throws OptError BAD_STATE */
export function matchNames(
  where: string,
  groups: readonly (readonly Slot[])[],
  saved: OptimizerState,
): Map<Slot, string> {
  check(
    isPlainObject(saved) && Array.isArray(saved.groups) && isPlainObject(saved.state),
    "BAD_STATE",
    where,
    () => "state must be { groups, state }.",
    "Pass what stateDict() returned.",
  );
  const count = () => `the state must have ${groups.length} parameter groups, got ${saved.groups.length}.`;
  check(saved.groups.length === groups.length, "BAD_STATE", where, count, SAME_GROUPS);
  const matched = new Map<Slot, string>();
  groups.forEach((slots, g) => {
    const names = slots.map(({ name }) => name);
    const theirs = saved.groups[g]?.params;
    const problem = () =>
      `group ${g} of the state must have ${slots.length} parameters, got ${theirs?.length ?? "none"}.`;
    check(Array.isArray(theirs) && theirs.length === slots.length, "BAD_STATE", where, problem, SAME_GROUPS);
    const savedNames = theirs.map(String);
    const areNumbers = (list: readonly string[]) => list.every((name) => /^\d+$/.test(name));
    const byPosition = areNumbers(savedNames) || areNumbers(names);
    const known = new Set(savedNames);
    const missing = byPosition ? [] : names.filter((name) => !known.has(name));
    check(
      missing.length === 0,
      "BAD_STATE",
      where,
      () => `group ${g} of the state lacks the parameters ${missing.slice(0, 5).join(", ")}.`,
      `Its first are ${savedNames.slice(0, 5).join(", ")}.`,
    );
    slots.forEach((slot, i) => {
      matched.set(slot, byPosition ? savedNames[i]! : slot.name);
    });
  });
  const listed = new Set(matched.values());
  const lost = Object.keys(saved.state).find((name) => !listed.has(name));
  check(lost === undefined, "BAD_STATE", where, () => `groups of the state must list ${lost}.`, SAME_GROUPS);
  return matched;
}

/** Checks one parameter's saved state without changing anything. @throws OptError BAD_STATE */
export function checkParameterState(
  where: string,
  name: string,
  param: Tensor,
  saved: ParameterStateDict,
  keys: readonly string[],
  initial: Counters,
): void {
  const entry = () => `${name}: must be an object, got ${show(saved)}.`;
  check(isPlainObject(saved), "BAD_STATE", where, entry, OTHER_STATE);
  for (const key of Object.keys(initial)) {
    const value = saved[key];
    const fits = key === "step" ? Number.isInteger(value) && (value as number) >= 0 : Number.isFinite(value);
    const problem = () =>
      `${name}: ${key} must be a ${key === "step" ? "whole" : "finite"} number, got ${show(value)}.`;
    check(fits, "BAD_STATE", where, problem, OTHER_STATE);
  }
  for (const key of [...keys, MASTER]) {
    const value = saved[key];
    if (value === undefined && key === MASTER) continue;
    const missing = () => `${name}: needs the tensor ${key}, got ${typeof value}.`;
    checkNotSummary(where, `${name}: ${key}`, value);
    check(value instanceof Tensor, "BAD_STATE", where, missing, OTHER_STATE);
    value.checkAlive();
    const problem = () => `${name}: ${key} must have shape ${showShape(param.shape)}, got ${showShape(value.shape)}.`;
    check(sameShape(value.shape, param.shape), "BAD_STATE", where, problem, "The model has changed.");
  }
}

/** A private copy of saved state in the dtype and on the device of its parameter. Counters are kept as saved. */
export function copyParameterState(
  param: Tensor,
  saved: ParameterStateDict,
  rule: Rule,
  initial: Counters,
  options: GroupOptions,
): ParameterState {
  const counters = Object.fromEntries(Object.keys(initial).map((key) => [key, saved[key]])) as unknown as Counters;
  // What other options ask for (momentum, amsgrad) is kept until they are set again, as in a run that goes on.
  const copied = Object.keys(saved).filter(
    (key) =>
      saved[key] instanceof Tensor &&
      sameShape(saved[key].shape, param.shape) &&
      (key !== MASTER || (is16Bit(param) && !options.stochasticRounding)),
  );
  const copyOf = (key: string) =>
    tidy(() => {
      const dtype = key === MASTER ? "f32" : storedState(rule, key, param, options);
      const moved = move((saved[key] as Tensor).detach(), param.device);
      return keep(statePacking.pack?.(moved, dtype) ?? clone(cast(moved, dtype as DType)));
    });
  return { counters, tensors: new Map(copied.map((key) => [key, copyOf(key)])) };
}

/** Gives equal counters one object, so that their parameters step in one launch again. */
export function shareCounters(states: readonly ParameterState[]): ParameterState[] {
  const shared = new Map<string, Counters>();
  return states.map((state) => {
    const key = JSON.stringify(state.counters);
    const counters = shared.get(key) ?? state.counters;
    shared.set(key, counters);
    return { ...state, counters };
  });
}
