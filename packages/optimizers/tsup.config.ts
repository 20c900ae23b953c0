/** All optimizers in one build: their declarations need the same program. It runs at the root, whose modules are ES modules. */
import { existsSync, readdirSync } from "node:fs";
import { buildOf } from "../../tools/tsup";

const folder = "packages/optimizers";
const names = readdirSync(folder).filter((name) => existsSync(`${folder}/${name}/package.json`));
const entries = names.map((name) => [`${folder}/${name}/dist/index`, `${folder}/${name}/src/index.ts`]);

export default buildOf(Object.fromEntries(entries), {
  outDir: ".",
  clean: false, // it would remove the sources
  tsconfig: `${folder}/tsconfig.json`,
  external: [/^@opt\//],
});
