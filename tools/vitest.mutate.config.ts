import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mergeConfig } from "vitest/config";
import base from "./vitest.config";

// Tests for `npm run mutate`: those that judge core quickly. They run in a copy of the workspace, where the links of
// node_modules still lead to the original: packages of ours are found by their folder instead.
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
  test: { testTimeout: 30_000, exclude: ["**/{finalization,contract}.test.ts"] },
});
mutate.test.include = ["packages/{core,nadam,adam-amsgrad}/src/**/*.test.ts"];

export default mutate;
