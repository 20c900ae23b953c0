/**
 * `node tools/workspace/new-optimizer.mjs schedule-free [ScheduleFree]`: copies @opt/lion, a small optimizer, under a new name, exports it
 * from `@opt/optim` and announces it in a changeset. Its formula, tests and README are then yours to write.
 */
import { cpSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { filesIn } from "../native/native.mjs";
import { root, run } from "./run.mjs";

const [name = "", given] = process.argv.slice(2);
const title = given ?? name.replace(/(?:^|-)(.)/g, (_, letter) => letter.toUpperCase());
const folder = join(root, "packages/optimizers", name);
if (!/^[a-z][a-z0-9-]*$/.test(name) || existsSync(folder))
  throw new Error(`[new-optimizer] the name must be new and like schedule-free, got "${name}".`);

const isOwn = (/** @type {string} */ path) => /\/(dist|node_modules|testing|__snapshots__|CHANGELOG\.md)$/.test(path);
cpSync(join(root, "packages/optimizers/lion"), folder, { recursive: true, filter: (path) => !isOwn(path) });
for (const file of filesIn(folder)) {
  // Its formula is still Lion's, and so are the numbers that its tests compare with.
  const text = readFileSync(file, "utf8")
    .replaceAll("@opt/lion", `@opt/${name}`)
    .replace(/(?<!optaxGoldens\(")Lion/g, title);
  const base = name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  writeFileSync(file, text.replace(/(?<!@opt\/|optax\.)\blion/g, file.endsWith(".json") ? name : base));
}
renameSync(join(folder, "src/lion.test.ts"), join(folder, `src/${name}.test.ts`));
const path = join(folder, "package.json");
const { description, keywords, type, opt, peerDependencies, devDependencies } = JSON.parse(readFileSync(path, "utf8"));
const entry = { "@opt/source": "./src/index.ts", default: "./dist/index.js" };
const exports = { ".": entry, "./rules": entry };
const own = { name: `@opt/${name}`, version: "0.0.0", description, keywords, type, exports };
writeFileSync(path, JSON.stringify({ ...own, peerDependencies, devDependencies, opt }));
writeFileSync(join(root, `.changeset/${name}.md`), `---\n"@opt/${name}": minor\n---\n\n${description}.\n`);
const all = join(root, "packages/optim/src/index.ts");
const [first, ...lines] = readFileSync(all, "utf8").trimEnd().split("\n");
writeFileSync(all, `${[first, ...[...lines, `export * from "@opt/${name}";`].sort()].join("\n")}\n`);
// npm links the package into node_modules and notes it in the lock file.
if (!run("node", ["tools/workspace/manifests.mjs"]).ok || !run("npm", ["install", "--no-audit", "--no-fund"]).ok)
  throw new Error(`[new-optimizer] npm cannot link @opt/${name}. See its message above.`);
console.log(`Next: write ${folder}/src/index.ts, then npm run unit -- packages/optimizers/${name}/`);
