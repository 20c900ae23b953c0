/** An optimizer's states as PyTorch's files name and nest them. */
import type { Json, SourceTensor } from "../../format/source";
import { isObject } from "../../formats/bytes/json";
import type { PythonTree } from "../../formats/python/tree";
import { castTensor } from "../../read/cast";

/** As `optimizerContents` keeps it among the values. */
export interface SavedOptimizer {
  readonly groups: readonly ({ readonly params: readonly string[] } & { readonly [option: string]: Json })[];
  readonly counters: { readonly [param: string]: { readonly [name: string]: number } };
}

/** What PyTorch's modules count in I64 is i32 in a Tensor. */
export function asCounted(tensor: SourceTensor): SourceTensor {
  const isCount = tensor.dtype === "I32" && /(^|\.)(num_batches_tracked|n_averaged)$/.test(tensor.name);
  return isCount ? castTensor(tensor, "I64") : tensor;
}

/** LBFGS's lists, which PyTorch wants even where they are empty. */
const LISTS = ["old_dirs", "old_stps", "ro"];

/** `old_dirs.0`, `old_dirs.1` as a list. */
export function withLists(states: ReadonlyMap<string, PythonTree>): [string, PythonTree][] {
  const result = new Map<string, PythonTree>();
  const lists = new Map<string, PythonTree[]>(states.has("prev_flat_grad") ? LISTS.map((name) => [name, []]) : []);
  for (const [name, value] of states) {
    const [, list, place] = /^([^.]+)\.(\d+)$/.exec(name) ?? [];
    if (list === undefined) result.set(name, value);
    else lists.set(list, Object.assign(lists.get(list) ?? [], { [place!]: value }));
  }
  for (const [name, list] of lists) if (!result.has(name)) result.set(name, { list });
  return [...result];
}

/** `fc.weight.exp_avg` and `moments.fc.weight` alike. */
export function stateName(name: string, follows: string): string {
  if (name.startsWith(follows)) return name.slice(follows.length + 1);
  return name.endsWith(follows) ? name.slice(0, -follows.length - 1) : name;
}

export function isSavedOptimizer(value: Json): boolean {
  if (!isObject(value) || !Array.isArray(value.groups) || !isObject(value.counters as Json)) return false;
  return value.groups.every((group) => isObject(group) && Array.isArray(group.params));
}
