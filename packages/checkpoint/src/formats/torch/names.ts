/**
 * PyTorch numbers the parameters of an optimizer in the order of its groups. A number's name is proven by `param_names`, by the map, by
 * a model beside it in which only one parameter has its shape, or (where the user vouches for it) by the model's order.
 */
import type { Json, TensorSource } from "../../format/source";
import type { NamingContext, Renaming } from "../names/renaming";
import { inNumbers } from "../names/scalars";
import { itemsOf, membersOf, type PythonTree, plainOf, tensorOf } from "../python/tree";
import { modelOf, modelsIn, resolve } from "./match";
import { keyOf, survey, type TorchOptimizer } from "./optimizers";

export async function torchNames(context: NamingContext): Promise<Renaming> {
  const { source } = context;
  const { optimizers, models: dicts } = survey(source.structure as PythonTree);
  const own = dicts.map(([prefix, tree]) => modelOf(prefix, tree, source));
  const models = [...own, ...context.beside.flatMap(modelsIn)].filter(({ parameters }) => parameters.size > 0);
  const resolved = optimizers.map((optimizer) => resolve(optimizer, models, context));

  const chosen = new Set(resolved.flatMap(({ model }) => (model === undefined ? [] : [model])));
  // One model's names begin after the word under which it was saved; of several (a GAN) that word tells them apart.
  const bare = chosen.size === 1;
  const names = new Map<string, string>();
  for (const { prefix, parameters, buffers } of bare ? chosen : []) {
    for (const name of [...parameters.keys(), ...buffers]) names.set(prefix + name, name);
  }
  const follows = new Map<string, string>();
  const kept = new Set<string>();
  const steps = new Map<string, number>();
  const values = new Map(Object.entries(source.values));
  for (const { optimizer, names: local, model } of resolved) {
    const held = models.filter(({ parameters }) => [...local.values()].every((name) => parameters.has(name)));
    // Of several models that have such parameters none is told: the one that others train must not be taken for it.
    const own = model === undefined && held.length > 1 ? optimizer.prefix : bare ? "" : (model?.prefix ?? "");
    const fullName = (key: string): string | undefined => {
      const name = local.get(key);
      return name === undefined ? name : `${own}${name}`;
    };
    const counters: Record<string, Record<string, number>> = {};
    for (const [key, states] of optimizer.state) {
      const parameter = fullName(key);
      if (parameter === undefined) continue;
      for (const [state, value] of states) {
        nameTensors(value, `${parameter}.${state}`, (tensor, name) => {
          names.set(tensor, name);
          follows.set(name, parameter);
        });
        for (const [name, plain] of numbersOf(value, state)) {
          // Before PyTorch 1.12 steps were plain numbers.
          if (name === "step") steps.set(parameter, plain);
          else counters[parameter] = { ...counters[parameter], [name]: plain };
        }
      }
    }
    for (const name of values.keys()) {
      const rest = name.startsWith(optimizer.prefix) ? name.slice(optimizer.prefix.length) : "";
      if (/^(state|param_groups)\./.test(rest)) values.delete(name);
    }
    const word = resolved.length === 1 ? "optimizer" : optimizer.prefix.slice(0, -1);
    values.set(word, { groups: await groupsOf(optimizer, fullName, source, kept), counters });
  }
  return {
    names,
    follows,
    kept,
    steps,
    values: Object.fromEntries(values),
    unproven: resolved.flatMap(({ unproven }) => unproven),
    stateless: optimizers.flatMap(({ groups, state, prefix }) =>
      groups.flatMap(({ params }) => params.filter((key) => !state.has(key)).map((key) => `${prefix}state.${key}`)),
    ),
  };
}

/** Names every tensor of a state: LBFGS keeps lists of them. */
function nameTensors(state: PythonTree, name: string, put: (tensor: string, name: string) => void): void {
  const tensor = tensorOf(state);
  if (tensor !== undefined) put(tensor, name);
  for (const [key, item] of membersOf(state) ?? []) nameTensors(item, `${name}.${keyOf(key)}`, put);
}

/** A plain number, or those of a list by their places. */
function numbersOf(state: PythonTree, name: string): [string, number][] {
  const plain = plainOf(state);
  if (typeof plain === "number") return [[name, plain]];
  return (itemsOf(state) ?? []).flatMap((item, i) => numbersOf(item, `${name}.${i}`));
}

/** The options of each group as ours are called (`weightDecay`), so that a run goes on with them; `kept` gets the tensors among them. */
async function groupsOf(
  optimizer: TorchOptimizer,
  nameOf: (key: string) => string | undefined,
  source: TensorSource,
  kept: Set<string>,
): Promise<Json> {
  const groups: Json[] = [];
  for (const { options, params } of optimizer.groups) {
    const group: Record<string, Json> = { params: params.map((key) => nameOf(key) ?? key) };
    for (const [name, value] of options) {
      const plain = plainOf(await inNumbers(value, source.tensors, kept));
      if (plain !== undefined && plain !== null)
        group[ourOption(name)] = plain === STRONG_WOLFE ? "strongWolfe" : plain;
    }
    groups.push(group);
  }
  return groups;
}

/** LBFGS's line search, in PyTorch's words. */
export const STRONG_WOLFE = "strong_wolfe";
const LINE_SEARCH = "line_search_fn";

/** `weight_decay` is called `weightDecay` here. */
export function ourOption(name: string): string {
  return name === LINE_SEARCH ? "lineSearch" : name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The inverse. */
export function torchOption(name: string): string {
  return name === "lineSearch" ? LINE_SEARCH : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
