/** An Nx plugin: the packages of `packages/optimizers` are built, typed, linted and tested alike, so none of them says how. */
import { dirname } from "node:path";

const settings = "{workspaceRoot}/packages/optimizers/tsconfig.json";

/** @param {string} root the package's folder, from the workspace's */
function project(root) {
  /** @param {string} command */
  const target = (command) => ({ command, options: { cwd: "{projectRoot}" } });
  return {
    tags: ["optimizer"],
    namedInputs: { settings: ["{workspaceRoot}/tsconfig.base.json", "{workspaceRoot}/nx.json", settings] },
    targets: {
      build: target("tsup --config ../../../tools/tsup.ts"),
      typecheck: target("tsc -p .."),
      lint: target("biome check ."),
      test: target(`vitest run --config ../../../tools/vitest.config.ts ${root}/`),
    },
  };
}

export const name = "optimizers";

/** @type {[string, (files: readonly string[]) => [string, object][]]} */
export const createNodesV2 = [
  "packages/optimizers/*/package.json",
  (files) => files.map((file) => [file, { projects: { [dirname(file)]: project(dirname(file)) } }]),
];
