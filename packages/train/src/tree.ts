/** States and results are trees: lists and plain objects, with tensors and numbers at their ends. */
import { keep, Tensor, tidy } from "@opt/core";

/** A copy of a tree with each leaf changed. A leaf's path is the keys to it, joined by dots behind `path`. */
export function mapTree(
  tree: unknown,
  change: (leaf: unknown, path: string, keys: readonly string[]) => unknown,
  path = "",
  keys: readonly string[] = [],
): unknown {
  const isPlain = typeof tree === "object" && tree !== null && Object.getPrototypeOf(tree) === Object.prototype;
  if (!isPlain && !Array.isArray(tree)) return change(tree, path, keys);
  const below = (key: string, value: unknown) => mapTree(value, change, `${path}.${key}`, [...keys, key]);
  const entries = Object.entries(tree).map(([key, value]) => [key, below(key, value)]);
  return isPlain ? Object.fromEntries(entries) : entries.map(([, value]) => value);
}

/** The same tree with copies of its tensors, for `freeTree`. */
export const copyTree = <Tree>(tree: Tree) =>
  mapTree(tree, (leaf) => (leaf instanceof Tensor ? copyOf(leaf) : leaf)) as Tree;

function copyOf(x: Tensor): Tensor {
  const copy = keep(tidy(() => x.detach().clone()));
  copy.placement = x.placement; // a part of another tensor stays one
  return copy;
}

export const freeTree = (tree: unknown) =>
  void mapTree(tree, (leaf) => (leaf instanceof Tensor ? leaf.dispose() : undefined));
