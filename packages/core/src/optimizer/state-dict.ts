/** Optimizer state as plain data: PyTorch's keys, parameters by name. */

import { OptError } from "../errors";
import { cast, clone, move } from "../ops";
import { keep, tidy } from "../scope";
import { sameShape, showShape } from "../shape";
import { noGrad } from "../tape";
import { Tensor } from "../tensor";
import type { Counters } from "./algorithm";
import type { Slot } from "./slot";
import { MASTER, type ParameterState, stateDType } from "./state";

/** One parameter's state: `step`, other numbers (mu_product), and tensors (exp_avg, exp_avg_sq, max_exp_avg_sq). */
export type ParameterStateDict = { step: number } & { [key: string]: number | Tensor };

export interface OptimizerState {
  /** The options of each group, and its parameters by name. */
  groups: ({ params: string[] } & Record<string, unknown>)[];
  state: Record<string, ParameterStateDict>;
}

/** Tensors are the live ones, not copies: save or clone them before the next step. */
export function parameterStateDict({ counters, tensors }: ParameterState): ParameterStateDict {
  return { ...counters, ...Object.fromEntries(tensors) } as ParameterStateDict;
}

/** The saved name of every parameter: equal names, or by position where one side has only numbers for names. @throws OptError BAD_STATE */
export function matchNames(
  where: string,
  groups: readonly (readonly Slot[])[],
  saved: OptimizerState,
): Map<Slot, string> {
  if (
    typeof saved !== "object" ||
    saved === null ||
    !Array.isArray(saved.groups) ||
    typeof saved.state !== "object" ||
    saved.state === null
  ) {
    throw new OptError("BAD_STATE", where, "state must be { groups, state }.", "Pass what stateDict() returned.");
  }
  if (saved.groups.length !== groups.length) {
    throw new OptError(
      "BAD_STATE",
      where,
      `the state must have ${groups.length} parameter groups, got ${saved.groups.length}.`,
      "Build the optimizer with the same groups.",
    );
  }
  const matched = new Map<Slot, string>();
  groups.forEach((slots, g) => {
    const names = slots.map(({ name }) => name);
    const theirs = saved.groups[g]?.params;
    if (!Array.isArray(theirs) || theirs.length !== slots.length) {
      const got = Array.isArray(theirs) ? `${theirs.length}` : "none";
      throw new OptError(
        "BAD_STATE",
        where,
        `group ${g} of the state must have ${slots.length} parameters, got ${got}.`,
        "Build the optimizer with the same groups.",
      );
    }
    const savedNames = theirs.map(String);
    const areNumbers = (list: readonly string[]) => list.every((name) => /^\d+$/.test(name));
    const byPosition = areNumbers(savedNames) || areNumbers(names);
    const known = new Set(savedNames);
    const missing = byPosition ? [] : names.filter((name) => !known.has(name));
    if (missing.length > 0) {
      throw new OptError(
        "BAD_STATE",
        where,
        `group ${g} of the state lacks the parameters ${missing.slice(0, 5).join(", ")}.`,
        `It has ${savedNames.slice(0, 5).join(", ")}${savedNames.length > 5 ? ", ..." : ""}.`,
      );
    }
    slots.forEach((slot, i) => {
      matched.set(slot, byPosition ? savedNames[i]! : slot.name);
    });
  });
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
  const refuse = (problem: string, advice: string) => new OptError("BAD_STATE", where, `${name}: ${problem}`, advice);
  if (typeof saved !== "object" || saved === null)
    throw refuse(`must be an object, got ${String(saved)}.`, "The state is damaged.");
  for (const key of Object.keys(initial)) {
    const value = saved[key];
    if (
      typeof value !== "number" ||
      Number.isNaN(value) ||
      (key === "step" && !(Number.isInteger(value) && value >= 0))
    ) {
      throw refuse(
        `${key} must be a ${key === "step" ? "whole " : ""}number, got ${String(value)}.`,
        "This state is of another optimizer or damaged.",
      );
    }
  }
  for (const key of [...keys, MASTER]) {
    const value = saved[key];
    if (value === undefined && key === MASTER) continue;
    if (!(value instanceof Tensor))
      throw refuse(
        `needs the tensor ${key}, got ${typeof value}.`,
        "This state is of another optimizer, or of other options (amsgrad).",
      );
    value.checkAlive();
    if (!sameShape(value.shape, param.shape)) {
      throw refuse(
        `${key} must have shape ${showShape(param.shape)}, got ${showShape(value.shape)}.`,
        "The model has changed since it was saved.",
      );
    }
  }
}

/** A private copy of saved state in the dtype and on the device of its parameter. Counters are kept as saved, mu_product in float32. */
export function copyParameterState(
  param: Tensor,
  saved: ParameterStateDict,
  keys: readonly string[],
  initial: Counters,
): ParameterState {
  const counters = Object.fromEntries(
    Object.keys(initial).map((key) => [key, key === "step" ? saved.step : Math.fround(saved[key] as number)]),
  ) as unknown as Counters;
  const is16Bit = param.dtype !== "f32" && param.dtype !== "f64";
  const copied = is16Bit && saved[MASTER] !== undefined ? [...keys, MASTER] : keys;
  const copyOf = (source: Tensor) =>
    noGrad(() =>
      tidy(() => {
        const converted = cast(move(source.detach(), param.device), stateDType(param));
        return keep(clone(converted));
      }),
    );
  return { counters, tensors: new Map(copied.map((key) => [key, copyOf(saved[key] as Tensor)])) };
}

/** Gives equal counters one object, so that their parameters step in one launch again. */
export function shareCounters(states: readonly ParameterState[]): ParameterState[] {
  const shared = new Map<string, Counters>();
  return states.map((state) => {
    const key = JSON.stringify(Object.entries(state.counters).sort());
    const counters = shared.get(key) ?? state.counters;
    shared.set(key, counters);
    return { ...state, counters };
  });
}
