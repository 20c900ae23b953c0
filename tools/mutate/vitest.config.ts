import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mergeConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import base from "../vitest.config";
import { area } from "./areas.mjs";

// The tests that judge an area. They run in a copy of the workspace, where the links of node_modules still lead to the
// original: our packages are found by their folder.
const root = new URL("../..", import.meta.url).pathname;

function sourceOf(id: string): string {
  const [, name = "", ...entry] = id.split("/");
  const folder = join(root, "packages", name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const target = exports[[".", ...entry].join("/")];
  return join(folder, target["@opt/source"] ?? target);
}

const tests: readonly string[] = area.tests;

/** In the order of the area's list. */
class Listed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      tests.findIndex((name) => moduleId.includes(`/${area.package}/src/${name.replace(/[!*].*/, "")}`));
    return [...files].sort((a, b) => rank(a) - rank(b));
  }
}

const mutate = mergeConfig(base, {
  root,
  plugins: [
    { name: "own-packages", enforce: "pre", resolveId: (id: string) => (id.startsWith("@opt/") ? sourceOf(id) : null) },
  ],
  // One registry of modules for all files of a run: a third of the time.
  test: { isolate: false, setupFiles: ["tools/mutate/skip-long.ts"], sequence: { sequencer: Listed } },
});
mutate.test.include = tests.map((name) => `packages/${area.package}/src/${name}.test.ts`);

export default mutate;
