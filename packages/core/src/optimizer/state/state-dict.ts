/** Optimizer state as plain data: PyTorch's keys, parameters by name. */
import { keep, tidy } from "../../device/scope";
import { check, OptError } from "../../errors/errors";
import { isPlainObject, show } from "../../errors/show";
import { cast, clone, move } from "../../ops";
import type { Rule } from "../../rule/rule";
import { checkNotSummary } from "../../tensor/summary";
import { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { type Shape, sameShape, showShape } from "../../values/shape";
import type { Algorithm, BaseOptions, Counters, GroupOptions } from "../algorithm";
import { checkGroup, ownOptions, UNSET } from "../check";
import type { ParameterGroup } from "../group";
import { completeState } from "../prepare";
import { hasMaster, syncMasters } from "./master";
import {
  is16Bit,
  MASTER,
  type ParameterState,
  type Slot,
  type StepCounter,
  statePacking,
  stateShapes,
  storedState,
  wholeShape,
} from "./state";

/** One parameter's state: `step`, other numbers (mu_product), and tensors (exp_avg, exp_avg_sq, max_exp_avg_sq). */
export type ParameterStateDict = { step: number } & { [key: string]: number | Tensor };

export interface OptimizerState {
  /** The options of each group, and its parameters by name. */
  groups: ({ params: string[] } & Record<string, unknown>)[];
  state: Record<string, ParameterStateDict>;
}

/**
 * The state of the parameters that were stepped. Tensors and counters are the live ones; packed state comes as float32 copies.
 * `made`: options that were switched on since the last step needed more state.
 */
export function savedState<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  groups: readonly ParameterGroup<Options>[],
): { state: OptimizerState["state"]; made: boolean } {
  const { initialCounters: initial } = algorithm;
  const listed = { ...initial };
  const stepped = groups.map(({ slots, options }) => {
    const rule = algorithm.rule(options);
    return {
      slots: slots.filter(
        (slot) =>
          slot.state !== null &&
          (slot.state.isRenewed || isStepped(slot.state, initial, stateShapes(algorithm, rule, slot, options))),
      ),
      rule,
      options,
    };
  });
  const made = completeState(algorithm, stepped, false);
  const state: OptimizerState["state"] = {};
  for (const { slots, options } of stepped) {
    for (const slot of slots) {
      const { counter } = slot.state!;
      if (counter.counters === initial) counter.counters = listed;
      if (hasMaster(slot)) syncMasters([slot]);
      state[slot.name] = parameterStateDict(algorithm, slot, options);
    }
  }
  return { state, made };
}

/** What a state has in memory of its own, for who is done with it. */
export function copiesIn({ state }: OptimizerState): Tensor[] {
  const all = Object.values(state).flatMap((entry) => Object.values(entry));
  return all.filter((value) => value instanceof Tensor && value.isCopy === true) as Tensor[];
}

/**
 * A rule without averages counts no steps: master weights alone show that there were some, until averages are made. Those that
 * were made for a step that failed have the initial counters still.
 */
function isStepped({ counter: { counters }, tensors }: ParameterState, initial: Counters, shapes: object): boolean {
  if (counters.step > 0) return true;
  return tensors.has(MASTER) && (counters !== initial || !Object.keys(shapes).some((key) => tensors.has(key)));
}

/** Tensors that are divided as the parameter is say so. */
function parameterStateDict<Options extends BaseOptions>(
  { stageState }: Pick<Algorithm<Options>, "stageState">,
  { param, state: found }: Slot,
  options: Options,
): ParameterStateDict {
  const state = found!;
  const whole = wholeShape(param);
  const ofStages = stageState?.(whole, options) ?? {};
  const dict = {};
  for (const name of Object.keys(state.counter.counters)) {
    Object.defineProperty(dict, name, { enumerable: true, get: () => state.counter.counters[name] });
  }
  const tensors = [...state.tensors].map(([key, tensor]) => {
    const copy = tensor.packed?.unpacked();
    if (copy) copy.isCopy = true;
    const shown = copy ?? tensor;
    if (param.placement && sameShape(ofStages[key] ?? whole, whole)) shown.placement = param.placement;
    return [key, shown];
  });
  return Object.assign(dict, Object.fromEntries(tensors)) as ParameterStateDict;
}

/** States and options of a saved state, as copies. @throws OptError BAD_STATE if it does not fit */
export function loadedState<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  groups: readonly ParameterGroup<Options>[],
  saved: OptimizerState,
): { states: Map<Slot, ParameterState>; options: (Options & GroupOptions)[] } {
  const { name: where, initialCounters, counted } = algorithm;
  const lists = groups.map(({ slots }) => slots);
  const matched = matchNames(where, lists, saved);
  const options = groups.map((group, g) => loadedOptions(algorithm, group, saved.groups[g]!, g));
  const entries = lists.flatMap((slots, g) => {
    const rule = algorithm.rule(options[g]!);
    return slots.flatMap((slot) => {
      const stored = saved.state[matched.get(slot)!];
      if (stored === undefined) return [];
      const entry = counted === undefined ? stored : { ...stored, ...counted(Object(stored)) };
      const shapes = stateShapes(algorithm, rule, slot, options[g]!);
      checkParameterState(where, slot, entry, shapes, initialCounters);
      return [{ slot, entry, shapes, rule, options: options[g]! }];
    });
  });
  const states = new Map<Slot, ParameterState>();
  const counters = new Map<string, StepCounter>();
  for (const { slot, entry, shapes, rule, options } of entries) {
    const own = Object.fromEntries(Object.keys(initialCounters).map((key) => [key, entry[key]]));
    const key = JSON.stringify(own);
    const counter = counters.get(key) ?? { counters: own as unknown as Counters, users: 0 };
    counters.set(key, counter);
    counter.users++;
    states.set(slot, {
      counter,
      tensors: copiedTensors(algorithm, slot, entry, shapes, rule, options),
      masterVersion: -1,
      isRenewed: algorithm.renewsState === true && entry.step === 0, // else it would not have been saved
    });
  }
  return { states, options };
}

/** A group's options as saved, validated. Unknown ones are left out: PyTorch saves how it computes, too. */
function loadedOptions<Options extends BaseOptions>(
  algorithm: Algorithm<Options>,
  group: ParameterGroup<Options>,
  saved: Record<string, unknown>,
  g: number,
): Options & GroupOptions {
  const { name: where, fixed, defaults } = algorithm;
  const present = Object(group.options) as Readonly<Record<string, unknown>>;
  const options = {
    ...Object.fromEntries(Object.keys(defaults).map((key) => [key, saved[key] ?? present[key]])),
    ...Object.fromEntries(Object.keys(UNSET).map((key) => [key, saved[key] === undefined ? present[key] : saved[key]])),
    ...fixed,
    stateDType: present.stateDType, // how state is stored is this optimizer's own
  } as Options & GroupOptions;
  try {
    checkGroup(algorithm, options);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new OptError("BAD_STATE", where, `group ${g} of the state has bad options: ${problem}`, "", { cause });
  }
  return ownOptions(options);
}

const OTHER_STATE = "It is of another optimizer or other options (amsgrad) or damaged.";
const SAME_GROUPS = "Build it with the same groups.";

/** Checks that it is a state of so many groups. @throws OptError BAD_STATE */
export function checkParts(where: string, saved: OptimizerState, count: number): void {
  check(
    isPlainObject(saved) && Array.isArray(saved.groups) && isPlainObject(saved.state),
    "BAD_STATE",
    where,
    () => "state must be { groups, state }.",
    "Pass what stateDict() returned.",
  );
  check(
    saved.groups.length === count,
    "BAD_STATE",
    where,
    () => `the state must have ${count} parameter groups, got ${saved.groups.length}.`,
    SAME_GROUPS,
  );
}

/** The saved name of every parameter: equal names, or by position if one side has only numbers for names. @throws OptError BAD_STATE */
function matchNames(where: string, groups: readonly (readonly Slot[])[], saved: OptimizerState): Map<Slot, string> {
  checkParts(where, saved, groups.length);
  const matched = new Map<Slot, string>();
  groups.forEach((slots, g) => {
    const names = slots.map(({ name }) => name);
    const theirs = saved.groups[g]?.params;
    check(
      Array.isArray(theirs) && theirs.length === slots.length,
      "BAD_STATE",
      where,
      () => `group ${g} of the state must have ${slots.length} parameters, got ${theirs?.length ?? "none"}.`,
      SAME_GROUPS,
    );
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
function checkParameterState(
  where: string,
  { name, param }: Slot,
  saved: ParameterStateDict,
  shapes: Readonly<Record<string, Shape>>,
  initial: Counters,
): void {
  check(isPlainObject(saved), "BAD_STATE", where, () => `${name}: must be an object, got ${show(saved)}.`, OTHER_STATE);
  for (const key of Object.keys(initial)) {
    const value = saved[key];
    const fits = key === "step" ? Number.isInteger(value) && (value as number) >= 0 : Number.isFinite(value);
    check(
      fits,
      "BAD_STATE",
      where,
      () => `${name}: ${key} must be a ${key === "step" ? "whole" : "finite"} number, got ${show(value)}.`,
      OTHER_STATE,
    );
  }
  for (const [key, shape] of [...Object.entries(shapes), [MASTER, param.shape] as const]) {
    const value = saved[key];
    if (value === undefined && key === MASTER) continue;
    checkNotSummary(where, `${name}: ${key}`, value);
    check(
      value instanceof Tensor,
      "BAD_STATE",
      where,
      () => `${name}: needs the tensor ${key}, got ${typeof value}.`,
      OTHER_STATE,
    );
    value.checkAlive();
    check(
      sameShape(value.shape, shape),
      "BAD_STATE",
      where,
      () => `${name}: ${key} must have shape ${showShape(shape)}, got ${showShape(value.shape)}.`,
      "The model has changed.",
    );
  }
}

/** Private copies of saved tensors in the dtype and on the device of their parameter. */
function copiedTensors<Options extends BaseOptions>(
  { initialState, stageState }: Algorithm<Options>,
  { param }: Slot,
  saved: ParameterStateDict,
  shapes: Readonly<Record<string, Shape>>,
  rule: Rule,
  options: Options & GroupOptions,
): Map<string, Tensor> {
  const ofStages = stageState?.(wholeShape(param), options) ?? {};
  // Tensors that only other options need (momentum, amsgrad) are kept until those are set again, as in a run that goes on.
  const copied = Object.keys(saved).filter(
    (key) =>
      saved[key] instanceof Tensor &&
      sameShape(saved[key].shape, shapes[key] ?? param.shape) &&
      (key in shapes || !(key in ofStages)) && // else its owner has it
      (key !== MASTER || (is16Bit(param) && !options.stochasticRounding)),
  );
  const copyOf = (key: string) =>
    tidy(() => {
      const dtype = storedState(rule, key, param, options, initialState?.(options));
      const moved = move((saved[key] as Tensor).detach(), param.device);
      return keep(statePacking.pack?.(moved, dtype) ?? clone(cast(moved, dtype as DType)));
    });
  return new Map(copied.map((key) => [key, copyOf(key)]));
}
