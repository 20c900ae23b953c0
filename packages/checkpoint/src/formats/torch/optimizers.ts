/** Finds optimizers in what PyTorch saved: `{ state, param_groups }`, by number or by name, nested or flattened. */
import { dictOf, itemsOf, membersOf, type PythonTree, plainOf } from "../python/tree";

/** How the state dict calls its parameters: `0`, `fc.weight`, or `state.fc.weight.exp_avg` in one flat dict. */
export type OptimizerForm = "numbered" | "named" | "flat";

export interface TorchGroup {
  readonly options: ReadonlyMap<string, PythonTree>;
  readonly params: readonly string[];
  /** Their names, where the optimizer was made with named parameters (PyTorch 2.6 on). */
  readonly names?: readonly string[];
}

export interface TorchOptimizer {
  /** What the names of its tensors and values begin with. */
  readonly prefix: string;
  readonly form: OptimizerForm;
  readonly groups: readonly TorchGroup[];
  readonly state: ReadonlyMap<string, ReadonlyMap<string, PythonTree>>;
}

/** The optimizer that a dict is, or undefined for any other object. */
export function optimizerOf(tree: PythonTree, prefix: string): TorchOptimizer | undefined {
  const members = dictOf(tree);
  if (members === undefined || members.length === 0) return undefined;
  return nestedOptimizer(members, prefix) ?? flatOptimizer(members, prefix);
}

/** Every optimizer of a tree, and every dict outside of them that holds tensors itself. */
export function survey(root: PythonTree): { optimizers: TorchOptimizer[]; models: [string, PythonTree][] } {
  const optimizers: TorchOptimizer[] = [];
  const models: [string, PythonTree][] = [];
  const visit = (tree: PythonTree, prefix: string): void => {
    const optimizer = optimizerOf(tree, prefix);
    if (optimizer !== undefined) {
      optimizers.push(optimizer);
      return;
    }
    if (dictOf(tree) !== undefined) models.push([prefix, tree]);
    for (const [key, member] of membersOf(tree) ?? []) visit(member, `${prefix}${keyOf(key)}.`);
  };
  visit(root, "");
  return { optimizers, models };
}

export function keyOf(key: PythonTree): string {
  return String(plainOf(key));
}

function nestedOptimizer(members: [PythonTree, PythonTree][], prefix: string): TorchOptimizer | undefined {
  const stored = dictOf(members.find(([key]) => key === "state")?.[1] ?? { dict: [] });
  const listed = itemsOf(members.find(([key]) => key === "param_groups")?.[1]);
  if (stored === undefined || listed === undefined || listed.length === 0) return undefined;
  const groups: TorchGroup[] = [];
  let numbered = true;
  for (const group of listed) {
    const options = new Map(dictOf(group)?.map(([key, value]) => [keyOf(key), value]));
    const params = itemsOf(options.get("params"));
    if (params === undefined) return undefined;
    const names = itemsOf(options.get("param_names"))?.map(keyOf);
    options.delete("params");
    options.delete("param_names");
    numbered &&= params.every((param) => typeof param === "number");
    groups.push({ options, params: params.map(keyOf), ...(names?.length === params.length ? { names } : {}) });
  }
  const state = new Map<string, Map<string, PythonTree>>();
  for (const [key, entry] of stored) {
    state.set(keyOf(key), new Map(dictOf(entry)?.map(([name, value]) => [keyOf(name), value])));
  }
  return { prefix, form: numbered ? "numbered" : "named", groups, state };
}

/** `get_optimizer_state_dict` with `flatten_optimizer_state_dict`: every parameter has options of its own; equal ones make a group. */
function flatOptimizer(members: [PythonTree, PythonTree][], prefix: string): TorchOptimizer | undefined {
  const state = new Map<string, Map<string, PythonTree>>();
  const options = new Map<string, Map<string, PythonTree>>();
  for (const [key, value] of members) {
    const [, kind, parameter, name] = /^(state|param_groups)\.(.+)\.([^.]+)$/.exec(keyOf(key)) ?? [];
    if (name === undefined) return undefined;
    const table = kind === "state" ? state : options;
    const entry = table.get(parameter!) ?? new Map<string, PythonTree>();
    table.set(parameter!, entry.set(name, value));
  }
  const groups = new Map<string, { options: Map<string, PythonTree>; params: string[] }>();
  for (const parameter of new Set([...options.keys(), ...state.keys()])) {
    const own = options.get(parameter) ?? new Map<string, PythonTree>();
    const key = JSON.stringify([...own].sort(([a], [b]) => (a < b ? -1 : 1)));
    const group = groups.get(key) ?? { options: own, params: [] };
    group.params.push(parameter);
    groups.set(key, group);
  }
  return { prefix, form: "flat", groups: [...groups.values()], state };
}
