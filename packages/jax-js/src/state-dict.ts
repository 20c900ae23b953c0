/** The state of a transformation as the optimizer's class saves it, and back. */
import type { numpy as np } from "@jax-js/jax";
import { type Counters, check, type GroupOptions, type OptimizerState, type ParameterStateDict, show } from "@opt/core";
import type { RuleSteps } from "@opt/core/backend";
import { filledLike, type Leaf } from "./leaves";
import { arrayOf, checkedTensor, tensorOf } from "./tensors";

/** `states`: the leaves of each key. They are consumed. */
export async function stateDict(
  { regularizer = null, ...options }: GroupOptions,
  counters: Counters,
  leaves: readonly Leaf[],
  keys: readonly string[],
  states: readonly (readonly Leaf[])[],
): Promise<OptimizerState> {
  const names = leaves.map(({ name }) => name);
  const tensors = await Promise.all(states.map((parts) => Promise.all(parts.map(({ array }) => tensorOf(array)))));
  const entry = (i: number) => Object.fromEntries(keys.map((key, k) => [key, tensors[k]![i]!]));
  const state = names.map((name, i) => [name, { ...counters, ...entry(i) } as ParameterStateDict] as const);
  const penalty = typeof regularizer === "function" ? {} : { regularizer };
  return {
    groups: [{ ...options, ...penalty, params: names }],
    state: counters.step === 0 ? {} : Object.fromEntries(state),
  };
}

const FITTING = "Pass what was saved of the same parameters and optimizer.";

/** The counters, and for each key the arrays of the leaves. @throws OptError BAD_STATE */
export async function savedState(
  where: string,
  saved: OptimizerState,
  { initial, keys, first }: Pick<RuleSteps<never>, "initial" | "keys" | "first">,
  leaves: readonly Leaf[],
): Promise<{ counters: Counters; trees: np.Array[][] }> {
  const hasParams = (group: OptimizerState["groups"][number]) => Array.isArray(group?.params);
  const areGroups = Array.isArray(saved?.groups) && saved.groups.every(hasParams);
  const isState = areGroups && typeof saved.state === "object" && saved.state !== null;
  check(isState, "BAD_STATE", where, () => `state must be { groups, state }, got ${show(saved)}.`, FITTING);
  const theirs = saved.groups.flatMap(({ params }) => params).map(String);
  const byPosition = theirs.every((name) => /^\d+$/.test(name)) && theirs.length === leaves.length;
  const known = new Set(leaves.map(({ name }) => name));
  const other = byPosition ? undefined : theirs.find((name) => !known.has(name));
  check(other === undefined, "BAD_STATE", where, () => `the state has ${other}, which params lacks.`, FITTING);
  const entries = leaves.map(({ name }, i) => saved.state[byPosition ? theirs[i]! : name]);
  if (leaves.length === 0 || Object.keys(saved.state).length === 0) {
    return { counters: initial, trees: first.map((value) => leaves.map((leaf) => filledLike(leaf, value))) };
  }
  const counters = countersOf(where, entries, leaves, initial);
  const sources = keys.map((key) =>
    leaves.map((leaf, i) => checkedTensor(where, `${leaf.name}.${key}`, leaf, entries[i]![key])),
  );
  const trees = await Promise.all(
    sources.map((list) => Promise.all(list.map((source, i) => arrayOf(source, leaves[i]!)))),
  );
  return { counters, trees };
}

/** Those that all entries have. */
function countersOf(
  where: string,
  entries: readonly (ParameterStateDict | undefined)[],
  leaves: readonly Leaf[],
  initial: Counters,
): Counters {
  const [first] = entries;
  for (const [i, entry] of entries.entries()) {
    for (const name of Object.keys(initial)) {
      check(
        typeof entry?.[name] === "number" && Object.is(entry[name], first?.[name]),
        "BAD_STATE",
        where,
        () => `${leaves[i]!.name} must have been stepped as the others, got ${name} ${show(entry?.[name])}.`,
        FITTING,
      );
    }
  }
  return Object.fromEntries(Object.keys(initial).map((name) => [name, first![name]])) as unknown as Counters;
}
