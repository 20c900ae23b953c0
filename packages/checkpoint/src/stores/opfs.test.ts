import { expect, it } from "vitest";
import { opfsFileSystem, type PickedFolder } from "./opfs";

type Tree = { readonly [name: string]: Tree | null };

/** A folder as `showDirectoryPicker()` gives it; null is a file. */
const picked = (name: string, tree: Tree): PickedFolder => {
  const handleOf = (name: string, inside: Tree | null) => (inside ? picked(name, inside) : { kind: "file", name });
  return Object.assign(
    {
      kind: "directory" as const,
      name,
      getDirectoryHandle: async (name: string) => picked(name, tree[name]!),
    },
    {
      async *entries() {
        for (const [name, inside] of Object.entries(tree)) yield [name, handleOf(name, inside)] as const;
      },
    },
  );
};

it("looks into the folder that the user has picked", async () => {
  const fileSystem = opfsFileSystem(picked("home", { runs: { a: {}, "b.txt": null } }));
  expect(await fileSystem.list("")).toEqual([{ name: "runs", kind: "folder" }]);
  expect(await fileSystem.list("runs")).toEqual([
    { name: "a", kind: "folder" },
    { name: "b.txt", kind: "file" },
  ]);
});
