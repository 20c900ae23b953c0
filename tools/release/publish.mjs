/**
 * `npm run release`: publishes what npm does not have yet, the platforms' binaries first, and tags it.
 * `npm run release -- --dry-run` lists the names, versions and sizes. Both look at everything before anything is published.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { checkManifests } from "../workspace/manifests.mjs";
import { nx } from "../workspace/nx/run.mjs";
import { publicPackages, stage, withStage } from "../workspace/packages.mjs";
import { root, run, start } from "../workspace/run.mjs";
import { isPublished, platformPackages } from "./platforms.mjs";

const { values } = parseArgs({ options: { "dry-run": { type: "boolean", default: false } } });
const isDry = values["dry-run"];
const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const isTrusted = process.env.NPM_CONFIG_PROVENANCE === "true";

/** @typedef {import("../workspace/packages.mjs").Package} Package */

/** Those that npm lacks. @template {Package} R @param {readonly R[]} packages @returns {Promise<R[]>} */
async function unpublished(packages) {
  const known = await Promise.all(packages.map(({ name, version }) => isPublished(name, version)));
  return packages.filter((_, i) => !known[i]);
}

/** All at once: each waits for npm most of the time. @param {readonly Package[]} releases */
async function publish(releases) {
  await Promise.all(
    releases.map(async ({ name, version, folder }) => {
      const options = ["publish", folder, "--access", "public", ...(isDry ? ["--dry-run", "--json"] : [])];
      const { ok, stdout, stderr } = await start("npm", options, { quiet: isDry });
      if (!ok) throw new Error(`[release] ${name} failed. ${stderr}`);
      if (!isDry) return;
      const about = JSON.parse(stdout);
      const { size } = about.size === undefined ? Object.values(about)[0] : about;
      console.log(`${name}@${version} ${Math.ceil(size / 1024)} KiB`);
    }),
  );
}

/** Whether npm would let us publish to where `@opt` is. The registry of a rehearsal, on this machine, asks nobody. */
function mayPublish() {
  const own = run("npm", ["config", "get", "@opt:registry"], { quiet: true }).stdout.trim();
  if (/^http:\/\/(localhost|127\.)/.test(own)) return true;
  return run("npm", ["whoami", ...(own === "undefined" ? [] : ["--registry", own])], { quiet: true }).ok;
}

if (isTrusted && repository === undefined) throw new Error("[release] provenance needs `repository` in package.json.");
if (!isTrusted && !isDry && !mayPublish())
  throw new Error("[release] npm does not know you. Run `npm login`, or set a token.");
checkManifests();
const platforms = await unpublished(platformPackages());
const unbuilt = platforms.filter(({ missing }) => missing.length > 0).map(({ name }) => name);
if (unbuilt.length > 0 && !isDry)
  throw new Error(`[release] the binaries of ${unbuilt.join(", ")} are missing. Build them, or place them.`);
for (const name of unbuilt) console.log(`${name} is not built here`);
await nx(["run-many", "--targets", "build"]);
await withStage(async (folder) => {
  const staged = (/** @type {readonly Package[]} */ packages) =>
    packages.map((each) => ({ ...each, folder: stage(each, folder) }));
  await publish(staged(platforms.filter(({ missing }) => missing.length === 0)));
  await publish(staged(await unpublished(publicPackages())));
});
if (!isDry) process.exitCode = run("changeset", ["tag"]).status;
