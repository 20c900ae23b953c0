/** DCP flattens nested dicts and lists into dotted names: this puts them together again, by the paths that it notes. */
import type { PythonTree } from "../python/tree";

type Path = readonly (string | number)[];

interface Branch {
  readonly members: Map<string | number, Branch | { readonly leaf: PythonTree }>;
}

/** The tree whose leaves stand at their paths; an item without a path stands under its own name. */
export function nestedTree(leaves: ReadonlyMap<string, PythonTree>, paths: ReadonlyMap<string, Path>): PythonTree {
  const root: Branch = { members: new Map() };
  for (const [name, leaf] of leaves) {
    const path = paths.get(name) ?? guessedPath(name);
    const branch = path.slice(0, -1).reduce<Branch | undefined>((at, key) => at && branchAt(at, key), root);
    const last = path.at(-1)!;
    // Two items at one place, or one below another, cannot both be nested: this one stays flat.
    if (branch === undefined || branch.members.has(last)) root.members.set(name, { leaf });
    else branch.members.set(last, { leaf });
  }
  return treeOf(root);
}

function branchAt(branch: Branch, key: string | number): Branch | undefined {
  const known = branch.members.get(key);
  if (known !== undefined) return "members" in known ? known : undefined;
  const made: Branch = { members: new Map() };
  branch.members.set(key, made);
  return made;
}

/** Without paths (saved with `flatten_state_dict=False`) an optimizer's state is told by its name. */
function guessedPath(name: string): Path {
  const [, outer, parameter, state] = /^(.+?)\.state\.(.+)\.([^.]+)$/.exec(name) ?? [];
  if (state !== undefined) return [outer!, `state.${parameter}.${state}`];
  const [, holder, rest] = /^(.+?)\.(param_groups\..+\.[^.]+)$/.exec(name) ?? [];
  return rest === undefined ? [name] : [holder!, rest];
}

function treeOf({ members }: Branch): PythonTree {
  const trees = [...members].map(([key, member]): [string | number, PythonTree] => [
    key,
    "members" in member ? treeOf(member) : member.leaf,
  ]);
  if (trees.length > 0 && trees.every(([key]) => typeof key === "number")) {
    trees.sort(([a], [b]) => Number(a) - Number(b));
    return { list: trees.map(([, tree]) => tree) };
  }
  return { dict: trees };
}
