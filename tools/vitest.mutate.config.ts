import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mergeConfig } from "vitest/config";
import base from "./vitest.config";

// Tests for `npm run mutate`: a bug in core should be noticed by the tests of core's programs and those beside it. They run in
// a copy of the workspace, where the links of node_modules still lead to the original: our packages are found by their folder.
const root = new URL("..", import.meta.url).pathname;

function sourceOf(id: string): string {
  const [, name = "", ...entry] = id.split("/");
  const folder = join(root, "packages", name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const target = exports[[".", ...entry].join("/")];
  return join(folder, target["@opt/source"] ?? target);
}

const mutate = mergeConfig(base, {
  plugins: [
    { name: "own-packages", enforce: "pre", resolveId: (id: string) => (id.startsWith("@opt/") ? sourceOf(id) : null) },
  ],
  // One registry of modules for all files of a run: a third of the time.
  test: { isolate: false, testTimeout: 30_000, exclude: ["**/torch.test.ts"] },
});
mutate.test.include = [
  "packages/core/src/{engine,recording}.test.ts",
  "packages/core/src/{emit,optimizer,rule,schedules}/*.test.ts",
];

export default mutate;
