/** What `@opt/optim` depends on: each optimizer. `node tools/workspace/manifests.mjs` writes it, `npm test` checks it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { optimizerPackages } from "./packages.mjs";
import { root } from "./run.mjs";

const path = join(root, "packages/optim/package.json");

/** What a `^` range keeps fixed: 1 of 1.2.3, 0.2 of 0.2.3. @param {string} version */
const seriesOf = (version) => version.split(".", version.startsWith("0.") ? 2 : 1).join(".");

/** The manifest as it should be. A range that allows the version stays. */
function expected() {
  const manifest = JSON.parse(readFileSync(path, "utf8"));
  manifest.dependencies = Object.fromEntries(
    optimizerPackages().map(({ name, version }) => {
      const range = manifest.dependencies[name] ?? "";
      return [name, seriesOf(range.slice(1)) === seriesOf(version) ? range : `^${version}`];
    }),
  );
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

export function checkManifests() {
  if (readFileSync(path, "utf8") !== expected())
    throw new Error("packages/optim/package.json: run node tools/workspace/manifests.mjs.");
}

if (process.argv[1] === import.meta.filename) writeFileSync(path, expected());
