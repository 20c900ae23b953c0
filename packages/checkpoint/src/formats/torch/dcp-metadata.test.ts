import fc from "fast-check";
import { expect, it } from "vitest";
import type { PythonTree } from "../python/tree";
import { nestedTree } from "./dcp-metadata";

type Path = (string | number)[];

/** Lists of up to 13 items, for "10" sorts before "2" as text; keys of dicts may be such texts. */
const { tree: trees } = fc.letrec<{ tree: PythonTree; leaf: number; list: PythonTree; dict: PythonTree }>((tie) => ({
  tree: fc.oneof({ maxDepth: 3, withCrossShrink: true }, tie("leaf"), tie("list"), tie("dict")),
  leaf: fc.nat(),
  list: fc.array(tie("tree"), { minLength: 1, maxLength: 13 }).map((list) => ({ list })),
  dict: fc
    .uniqueArray(fc.tuple(fc.constantFrom("a", "b", "2", "10"), tie("tree")), {
      minLength: 1,
      selector: ([key]) => key,
    })
    .map((dict) => ({ dict: dict.sort() })),
}));

/** Each leaf of a tree with its path: keys of dicts, places in lists. */
function leavesOf(tree: PythonTree, path: Path = []): { path: Path; leaf: number }[] {
  if (typeof tree === "number") return [{ path, leaf: tree }];
  const { list = [], dict = [] } = tree as { list?: PythonTree[]; dict?: [string, PythonTree][] };
  return [...list.entries(), ...dict].flatMap(([key, item]) => leavesOf(item, [...path, key]));
}

/** Dicts by their keys: the order of the leaves makes theirs. */
function sorted(tree: PythonTree): PythonTree {
  if (typeof tree !== "object" || tree === null) return tree;
  if ("list" in tree) return { list: tree.list.map(sorted) };
  return {
    dict: (tree as { dict: [string, PythonTree][] }).dict
      .map(([key, item]) => [key, sorted(item)] as const)
      .sort() as never,
  };
}

it("leaves in any order become the tree that they were: lists of many items in their order", () => {
  const drawn = fc.tuple(trees, fc.infiniteStream(fc.nat()));
  fc.assert(
    fc.property(drawn, ([item, numbers]) => {
      const root: PythonTree = { dict: [["model", item]] };
      const leaves = leavesOf(root).map((one) => ({ ...one, rank: numbers.next().value }));
      leaves.sort((a, b) => a.rank - b.rank);
      const byName = leaves.map(({ path, leaf }) => [path.join("."), { path, leaf }] as const);
      const built = nestedTree(
        new Map(byName.map(([name, { leaf }]) => [name, leaf])),
        new Map(byName.map(([name, { path }]) => [name, path])),
      );
      expect(sorted(built)).toEqual(sorted(root));
    }),
  );
});
