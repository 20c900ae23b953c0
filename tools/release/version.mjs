/**
 * `npm run version`: turns changesets into versions, changelogs and ranges. What changesets does not know comes before and after it:
 * ranges of peers that the new core leaves, platform packages, and the rules that kernels keep.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import getReleasePlan from "@changesets/get-release-plan";
import { root, run } from "../run.mjs";
import { announcedPackages, writeChangeset } from "./changesets.mjs";
import { outgrown } from "./peers.mjs";
import { sync } from "./platforms.mjs";

/** @param {string} command @param {...string} args */
function must(command, ...args) {
  if (!run(command, args).ok) throw new Error(`[version] ${command} ${args[0]} failed.`);
}

/** Before changesets sees a peer out of its range: it would make that a major version. */
async function widenPeers() {
  const { releases } = await getReleasePlan(root);
  const core = releases.find(({ name, type }) => name === "@opt/core" && type !== "none");
  if (core === undefined) return;
  const packages = outgrown(core.newVersion);
  for (const { folder, range } of packages) {
    const path = join(folder, "package.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    manifest.peerDependencies[core.name] = range;
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const announced = announcedPackages();
  const silent = packages.map(({ name }) => name).filter((name) => !announced.has(name));
  if (silent.length > 0)
    writeChangeset(`core-${core.newVersion}`, silent, `Works with ${core.name} ${core.newVersion}, too.`);
}

await widenPeers();
must("changeset", "version");
sync();
must("tsx", "--conditions=@opt/source", "tools/release/rules.ts");
must("biome", "format", "--write", "packages/optimizers");
must("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund");
