/** `npm run version`: turns changesets into versions, changelogs and ranges of peers. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import getReleasePlan from "@changesets/get-release-plan";
import semver from "semver";
import { writeManifests } from "../workspace/manifests.mjs";
import { publicPackages } from "../workspace/packages.mjs";
import { root, run } from "../workspace/run.mjs";

/** @param {string} command @param {...string} args */
function must(command, ...args) {
  if (!run(command, args).ok) throw new Error(`[version] ${command} ${args[0]} failed.`);
}

/** Asks for the next version of each peer whose range would not allow it: changesets would make that a major version. */
async function raisePeers() {
  const { changesets } = await getReleasePlan(root);
  const types = new Map(changesets.flatMap(({ releases }) => releases.map(({ name, type }) => [name, type])));
  /** The versions that changesets ask for by themselves. @type {Map<string, string>} */
  const next = new Map();
  for (const { name, version } of publicPackages()) {
    const type = types.get(name) ?? "none";
    if (type !== "none") next.set(name, semver.inc(version, type) ?? version);
  }
  const silent = [];
  for (const { name, folder, peerDependencies = {} } of publicPackages()) {
    const outgrown = Object.entries(peerDependencies).filter(
      ([peer, range]) => next.has(peer) && !semver.satisfies(next.get(peer) ?? "", range),
    );
    if (outgrown.length === 0) continue;
    const path = join(folder, "package.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    for (const [peer] of outgrown) manifest.peerDependencies[peer] = `^${next.get(peer)}`;
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
    if (!next.has(name)) silent.push(`"${name}": patch\n`);
  }
  const text = `---\n${silent.join("")}---\n\nWorks with the new versions of its peers.\n`;
  if (silent.length > 0) writeFileSync(join(root, ".changeset/peers.md"), text);
}

await raisePeers();
must("changeset", "version");
writeManifests();
must("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund");
