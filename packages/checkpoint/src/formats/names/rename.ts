/** Other names for a whole checkpoint: its tensors, what follows them, an optimizer's groups and PyTorch's nesting alike. */
import { check, show } from "@opt/core";
import type { Json, SourceTensor, TensorSource } from "../../format/source";
import { matchesPattern } from "../../layout/layout";
import { renamed } from "../bytes/foreign-tensor";
import { isObject } from "../bytes/json";
import { renameTensors, treeFrom } from "../python/tree";
import { STRUCTURE_KEY } from "./renaming";

/** New names by pattern; a `*` in the new name stands for what the pattern's first `*` matched. */
export type Rename = { readonly [pattern: string]: string };

/**
 * The same checkpoint under new names; patterns that matched are taken off `unused`.
 *
 * @throws OptError DUPLICATE if two names fall together, BAD_ARGUMENT for a name that is no text
 */
export function renamePatterns(source: TensorSource, rename: Rename, unused: Set<string>): TensorSource {
  const patterns = Object.entries(rename);
  if (patterns.length === 0) return source;
  for (const [pattern, name] of patterns) {
    const rule = () => `${show(pattern)} must be given a name, got ${show(name)}.`;
    check(typeof name === "string", "BAD_ARGUMENT", "rename", rule, 'For example { "encoder.*": "*" }.');
  }
  const own = (name: string): string | undefined => {
    for (const [pattern, replacement] of patterns) {
      if (!matchesPattern(pattern, name)) continue;
      unused.delete(pattern);
      return replacement.replace("*", () => firstMatch(pattern, name));
    }
    return undefined;
  };
  const follow = ({ name, follows }: SourceTensor): string => {
    const parameter = follows === undefined ? undefined : own(follows);
    if (parameter !== undefined && name.startsWith(`${follows}.`)) return parameter + name.slice(follows!.length);
    return own(name) ?? name;
  };
  const names = new Map([...source.tensors.values()].map((tensor) => [tensor.name, follow(tensor)]));
  const nameOf = (name: string): string => names.get(name) ?? own(name) ?? name;
  const tensors = renamed(source.tensors.values(), nameOf, { path: source.path, advice: "Change rename." });
  const values = Object.entries(source.values).map(([key, value]) => [key, renamedValue(key, value, nameOf)] as const);
  return { ...source, tensors, values: Object.fromEntries(values) };
}

/** What the first `*` of a pattern stands for in a name that it matches: the least where others follow. */
function firstMatch(pattern: string, name: string): string {
  const [first, next, ...others] = pattern.split("*");
  if (next === undefined) return "";
  const begin = first!.length;
  return name.slice(begin, others.length > 0 ? name.indexOf(next, begin) : name.length - next.length);
}

function renamedValue(key: string, value: Json, nameOf: (name: string) => string): Json {
  if (key === STRUCTURE_KEY) {
    const tree = treeFrom(value);
    return tree === undefined ? value : (renameTensors(tree, nameOf) as Json);
  }
  if (!isObject(value) || !Array.isArray(value.groups)) return value;
  const groups = value.groups.map((group) =>
    isObject(group) && Array.isArray(group.params)
      ? { ...group, params: group.params.map((param) => nameOf(String(param))) }
      : group,
  );
  const counters = isObject(value.counters as Json) ? (value.counters as { [key: string]: Json }) : {};
  const counts = Object.entries(counters).map(([param, count]) => [nameOf(param), count] as const);
  return { ...value, groups, counters: Object.fromEntries(counts) };
}
