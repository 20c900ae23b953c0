/** An optimizer's state dict as contents of a checkpoint, and back: tensors as `<parameter>.<state>`, numbers among the values. */
import { check, checkOptions, type OptimizerState, type ParameterStateDict, show, type Tensor } from "@opt/core";
import { checkedValues } from "./json/plain";
import type { Json } from "./source";
import { type AnnotatedTensor, followedName, isTensor } from "./tensors";

/** What is kept under the optimizer's key among the values. */
interface SavedOptimizer {
  readonly groups: ({ params: string[] } & Record<string, unknown>)[];
  /** By parameter: step, mu_product and the like. */
  readonly counters: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface OptimizerContents {
  readonly tensors: Record<string, AnnotatedTensor>;
  readonly values: { readonly [key: string]: Json };
}

/**
 * What to save of an optimizer: spread both members into the contents of a checkpoint. Each state tensor follows its parameter, and so
 * is sliced as it is. Several optimizers need a key each.
 * LBFGS's lists become one tensor or number for each item.
 *
 * @throws OptError BAD_ARGUMENT for options that are no plain data (functions)
 * @example
 * const state = optimizerContents(optimizer.stateDict());
 * const weights = model.stateDict();
 * await saveCheckpoint("runs/b", { step: 1, tensors: { ...weights, ...state.tensors }, values: state.values });
 */
export function optimizerContents(
  state: { readonly groups: OptimizerState["groups"]; readonly state: Readonly<Record<string, object>> },
  key = "optimizer",
): OptimizerContents {
  const isState =
    isObject(state) && isList(state.groups) && isObject(state.state) && isList(Object.values(state.state));
  check(
    isState,
    "BAD_ARGUMENT",
    "optimizerContents",
    () => `state must be { groups, state }, got ${show(state)}.`,
    "Pass optimizer.stateDict(); a module's stateDict() goes into tensors as it is.",
  );
  const tensors: Record<string, AnnotatedTensor> = {};
  const counters: Record<string, Record<string, number>> = {};
  for (const [param, entry] of Object.entries(state.state)) {
    const numbers: Record<string, number> = {};
    for (const [name, value] of flat(entry)) {
      if (typeof value === "number") numbers[name] = value;
      else tensors[`${param}.${name}`] = { tensor: value, role: "state", follows: param };
    }
    counters[param] = numbers;
  }
  return { tensors, values: checkedValues({ [key]: { groups: state.groups, counters } }) };
}

/**
 * The state dict to give to `optimizer.loadStateDict`, from what `loadCheckpoint` returned. Checkpoints of other systems, which hold no
 * options of ours, give one group of the parameters named, or of all that have state. State that was
 * saved under a key takes that key: `{ key: "critic" }`.
 *
 * @throws OptError BAD_STATE if there is no state, or none under the key
 */
export function optimizerState(
  loaded: { readonly tensors: Readonly<Record<string, Tensor>>; readonly values: { readonly [key: string]: Json } },
  options: { readonly key?: string; readonly params?: readonly string[] } = {},
): OptimizerState {
  const isLoaded = isObject(loaded) && isObject(loaded.tensors) && isObject(loaded.values);
  check(
    isLoaded,
    "BAD_ARGUMENT",
    "optimizerState",
    () => `needs { tensors, values }, got ${show(loaded)}.`,
    "Pass what loadCheckpoint returned.",
  );
  checkOptions("optimizerState", options, { key: "string", params: "array" });
  const { key = "optimizer" } = options;
  const keys = Object.keys(loaded.values).filter((name) => savedUnder(name, loaded.values));
  const known = savedUnder(key, loaded.values);
  const isThere = known !== undefined || (keys.length === 0 && options.key === undefined);
  check(
    isThere,
    "BAD_STATE",
    "optimizerState",
    () => `no optimizer was saved under the key ${show(key)}.`,
    `There are ${show(keys)}.`,
  );
  const byParam = statesByParam(loaded.tensors, known);
  const params = options.params ?? [...byParam.keys()];
  const groups = known?.groups ?? [{ params: [...params] }];
  const state: Record<string, ParameterStateDict> = {};
  for (const param of groups.flatMap((group) => group.params)) {
    const entry = { ...known?.counters[param], ...byParam.get(param) };
    if (Object.keys(entry).length > 0) state[param] = nested(entry) as ParameterStateDict;
  }
  const isAny = known !== undefined || Object.keys(state).length > 0;
  check(
    isAny,
    "BAD_STATE",
    "optimizerState",
    () => "the checkpoint holds no optimizer state.",
    "Was it saved with it? PyTorch's files go through convertCheckpoint first.",
  );
  return { groups, state };
}

function savedUnder(key: string, values: { readonly [key: string]: Json }): SavedOptimizer | undefined {
  const saved = values[key] as unknown as SavedOptimizer | undefined;
  return isObject(saved) && isList(saved!.groups) ? saved : undefined;
}

/** Lists as `old_dirs.0`, `old_dirs.1`. */
function flat(entry: object): [string, number | Tensor][] {
  return Object.entries(entry).flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((item, i): [string, number | Tensor] => [`${name}.${i}`, item]) : [[name, value]],
  );
}

function nested(entry: Readonly<Record<string, number | Tensor>>): object {
  const result: Record<string, number | Tensor | (number | Tensor)[]> = {};
  for (const [name, value] of Object.entries(entry)) {
    const [, list, place] = LISTED.exec(name) ?? [];
    if (list === undefined) result[name] = value;
    else {
      result[list] ??= [];
      (result[list] as (number | Tensor)[])[Number(place)] = value;
    }
  }
  return result;
}

function isList(values: unknown): boolean {
  return Array.isArray(values) && values.every(isObject);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** Numbers that other systems keep as tensors. */
const COUNTERS = new Set([
  ...["step", "mu_product", "eta", "mu", "weight_sum", "lr_max", "since_update", "updates"],
  ...["t", "ro", "H_diag", "prev_loss", "func_evals", "n_iter"],
  "n_averaged",
]);

/** An item of a list: `old_dirs.3`. */
const LISTED = /^([^.]+)\.(\d+)$/;

/** Whether a tensor of one element is a number that optimizers and averages count with. */
export function isCounterName(name: string): boolean {
  const [last = "", before] = name.split(".").reverse();
  return COUNTERS.has(/^\d+$/.test(last) ? (before ?? "") : last);
}

function statesByParam(tensors: Readonly<Record<string, Tensor>>, known: SavedOptimizer | undefined) {
  const params = new Set(known ? known.groups.flatMap((group) => group.params) : Object.keys(tensors));
  const states = new Map<string, Record<string, number | Tensor>>();
  for (const [name, tensor] of Object.entries(tensors)) {
    const end = name.lastIndexOf(".");
    const isListed = /^\d+$/.test(name.slice(end + 1)) && !params.has(name.slice(0, Math.max(0, end)));
    const dot = isListed ? name.lastIndexOf(".", end - 1) : end;
    const param = name.slice(0, Math.max(0, dot));
    // With our own groups any state's name will do; without them only the usual ones are states.
    if (!params.has(param) || (!known && followedName(name, params) !== param)) continue;
    const state = states.get(param) ?? {};
    const key = name.slice(dot + 1);
    const isCounter = COUNTERS.has(LISTED.exec(key)?.[1] ?? key) && isTensor(tensor) && tensor.size === 1;
    state[key] = isCounter ? tensor.dataSync()[0]! : tensor;
    states.set(param, state);
  }
  return states;
}
