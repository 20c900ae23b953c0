/**
 * `npm run pack -- nadam core`: builds and packs packages and those that they need, and prints the line that installs them.
 * Without names it packs all. `--out folder` is where the tarballs go, by itself runs/tarballs.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { NATIVE } from "../workspace/nx/graph.mjs";
import { nx } from "../workspace/nx/run.mjs";
import { pack, publicPackages, tarballOf } from "../workspace/packages.mjs";
import { platformPackages } from "../workspace/platforms.mjs";
import { root } from "../workspace/run.mjs";

const options = /** @type {const} */ ({ out: { type: "string", default: join(root, "runs/tarballs") } });
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const packages = new Map(publicPackages().map((each) => [each.name, each]));
const platforms = platformPackages();
const binaries = platforms.filter(({ missing }) => missing.length === 0);
const all = new Map([...packages, ...binaries.map((each) => /** @type {const} */ ([each.name, each]))]);

/** @param {readonly string[]} names of packages @returns {string[]} with those that they need */
function withNeeded(names) {
  const found = new Set(names);
  // A set that grows while it is walked.
  for (const name of found) {
    const { dependencies, peerDependencies, optionalDependencies } = all.get(name) ?? {};
    for (const other of Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }))
      if (all.has(other)) found.add(other);
  }
  return [...found];
}

const asked = positionals.map((name) => (name.startsWith("@") ? name : `@opt/${name}`));
const unknown = asked.filter((name) => !packages.has(name));
if (unknown.length > 0) {
  const names = [...packages.keys()].map((name) => name.replace("@opt/", ""));
  console.error(`[pack] there is no package ${unknown.join(", ")}. The packages are ${names.join(", ")}.`);
  process.exit(1);
}
const chosen = withNeeded(asked.length > 0 ? asked : [...packages.keys()]).flatMap((name) => all.get(name) ?? []);
const withoutBinary = new Set(platforms.map(({ consumer }) => consumer));
for (const { consumer } of binaries) withoutBinary.delete(consumer);
for (const { name } of chosen.filter((each) => withoutBinary.has(each.name)))
  console.error(`[pack] ${name} has no binary here. Build one with npx nx native ${NATIVE[name]}.`);
const projects = chosen.flatMap(({ name }) => (packages.has(name) ? [name] : []));
await nx(["run-many", "--targets", "build", "--projects", projects.join(",")]);
// npm runs a script in the root, wherever its user is.
const out = resolve(process.env.INIT_CWD ?? ".", values.out);
mkdirSync(out, { recursive: true });
await pack(out, chosen);
const tarballs = chosen.map((each) => tarballOf(out, each));
console.log(`npm i ${tarballs.map((path) => (path.includes(" ") ? `"${path}"` : path)).join(" ")}`);
