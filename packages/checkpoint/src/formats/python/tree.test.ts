import fc from "fast-check";
import { expect, it } from "vitest";
import { type PythonTree, plainOf, renameTensors, treeFrom } from "./tree";

const tree: fc.Arbitrary<PythonTree> = fc.letrec<{ tree: PythonTree; items: PythonTree[] }>((tie) => ({
  items: fc.array(tie("tree"), { maxLength: 3 }),
  tree: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<PythonTree>(null, true, 3, 0.5, "text", { float: "1" }, { int: "99999999999999999999" }),
    fc.constantFrom<PythonTree>({ tensor: "w" }, { global: "torch.float32" }, { text: "odd" }),
    tie("items").map((list): PythonTree => ({ list })),
    tie("items").map((tuple): PythonTree => ({ tuple })),
    tie("items").map((args): PythonTree => ({ call: "torch.Size", args })),
    tie("items").map((items): PythonTree => ({ dict: items.map((item, i) => [i, item]), ordered: true })),
  ),
})).tree;

it("a tree that went through JSON is the same, and renaming nothing changes nothing", () => {
  fc.assert(
    fc.property(tree, (one) => {
      expect(treeFrom(JSON.parse(JSON.stringify(one)))).toEqual(one);
      expect(renameTensors(one, (name) => name)).toEqual(one);
    }),
  );
});

it.each([
  [{ dict: 5 }],
  [{ dict: [[1]] }],
  [{ dict: [[1, { list: 3 }]] }],
  [{ list: "abc" }],
  [{ call: "os.system" }],
  [{ int: "1; drop" }],
  [{ tensor: 5 }],
  [[1]],
  [{}],
  [undefined],
])("JSON that is no tree is told: %j", (json) => expect(treeFrom(json)).toBeUndefined());

it("nesting without end is no tree", () => {
  let deep: unknown = 1;
  for (let i = 0; i < 5000; i++) deep = { list: [deep] };
  expect(treeFrom(deep)).toBeUndefined();
});

it("plain values are JSON where it has them", () => {
  const one: PythonTree = {
    dict: [
      ["a", { tuple: [1, { float: "2" }] }],
      [3, { float: "Infinity" }],
    ],
  };
  expect(plainOf(one)).toEqual({ a: [1, 2], 3: "inf" });
  expect(plainOf({ list: [{ tensor: "w" }] })).toBeUndefined();
});

it("a tensor without a name is left out of what holds it", () => {
  const one: PythonTree = {
    dict: [
      ["a", { tensor: "a" }],
      ["l", { list: [{ tensor: "a" }, { tensor: "b" }] }],
    ],
  };
  expect(renameTensors(one, (name) => (name === "b" ? "c" : undefined))).toEqual({
    dict: [["l", { list: [{ tensor: "c" }] }]],
  });
});

it("a tensor that stands under its own name stands under its new one", () => {
  const one: PythonTree = {
    dict: [
      ["a", { tensor: "a" }],
      ["exp_avg", { tensor: "a.exp_avg" }],
    ],
  };
  expect(renameTensors(one, (name) => name.replace("a", "b"))).toEqual({
    dict: [
      ["b", { tensor: "b" }],
      ["exp_avg", { tensor: "b.exp_avg" }],
    ],
  });
});
