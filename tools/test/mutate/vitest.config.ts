import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { RunnerTestCase, RunnerTestFile } from "vitest";
import { mergeConfig } from "vitest/config";
import { BaseSequencer, type Reporter, type TestModule, type TestSpecification } from "vitest/node";
import base from "../vitest.config.ts";
import { area, patternOf } from "./areas.mjs";

// The tests that judge an area. They run in a copy of the workspace, where the links of node_modules still lead to the
// original: our packages are found by their folder.
const root = new URL("../../..", import.meta.url).pathname;
const bundled = join(root, "runs/bundled", area.name);

function sourceOf(id: string): string {
  const [, name = "", ...entry] = id.split("/");
  const folder = ["packages", "packages/optimizers"].map((room) => join(root, room, name)).find(existsSync) ?? "";
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const target = exports[[".", ...entry].join("/")];
  return join(folder, target["@opt/source"] ?? target);
}

const wanted = area.tests.map(patternOf);

/** A test's place in the area's list; below 0: it is not of the area. */
const rank = (path: string) => wanted.findIndex((pattern) => pattern.test(path));
const tests = ["packages", "e2e"]
  .flatMap((folder) =>
    (readdirSync(join(root, folder), { recursive: true }) as string[]).map((path) => `${folder}/${path}`),
  )
  .filter((path) => path.endsWith(".test.ts") && !/node_modules|\.full\.test/.test(path) && rank(path) >= 0);

// Imported by name, they would come from the original, with another core.
const optimizers = `{${readdirSync(join(root, "packages/optimizers"))
  .filter((name) => existsSync(join(root, "packages/optimizers", name, "package.json")))
  .map((name) => `"@opt/${name}": () => import("@opt/${name}")`)
  .join(", ")}}`;

// Half of a run would be the loading of two hundred modules, one by one.
await build({
  entryPoints: tests.map((path) => join(root, path)),
  outdir: bundled,
  outbase: root,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "node20",
  platform: "node",
  conditions: ["@opt/source"],
  packages: "external",
  ignoreAnnotations: true,
  logLevel: "warning",
  plugins: [
    {
      name: "own-packages",
      setup(build) {
        build.onResolve({ filter: /^@opt\// }, ({ path }) => ({ path: sourceOf(path) }));
        build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
          loader: "ts",
          // Not where it is quoted.
          contents: readFileSync(path, "utf8")
            .replace(/(?<!")import\.meta\.url/g, `"${pathToFileURL(path)}"`)
            .replace("import(/* @vite-ignore */ name)", `(${optimizers})[name]()`),
        }));
      },
    },
  ],
});

/** In the order of the area's list. */
class Listed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const at = ({ moduleId }: TestSpecification) => rank(moduleId.slice(bundled.length + 1));
    return [...files].sort((a, b) => at(a) - at(b));
  }
}

/** A file that fails while it loads has no tests, and Stryker sees only these: it gets one that fails. */
const loads: Reporter = {
  onTestModuleEnd(module: TestModule) {
    const { task: file } = module as unknown as { task: RunnerTestFile };
    const { errors = [] } = file.result ?? {};
    if (errors.length === 0 || file.tasks.length > 0) return;
    file.tasks.push({
      type: "test",
      name: "loads",
      mode: "run",
      file,
      result: { state: "fail", errors },
    } as RunnerTestCase);
  },
};

const mutate = mergeConfig(base, {
  root,
  // One registry of modules for all files of a run.
  test: {
    isolate: false,
    setupFiles: ["tools/test/mutate/leave-out.ts"],
    sequence: { sequencer: Listed },
    reporters: [loads],
  },
});
delete mutate.test.projects;
mutate.test.include = [`runs/bundled/${area.name}/**/*.test.js`];

export default mutate;
