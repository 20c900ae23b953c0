/**
 * `npm run release`: publishes what npm does not have yet, the platforms' binaries first, and tags it.
 * `npm run release -- --dry-run` lists the names, versions and sizes. Both look at everything before anything is published.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { checkManifests } from "../workspace/manifests.mjs";
import { nx } from "../workspace/nx/run.mjs";
import { publicPackages } from "../workspace/packages.mjs";
import { platformPackages } from "../workspace/platforms.mjs";
import { root, run, start } from "../workspace/run.mjs";
import { unpublished } from "./unpublished.mjs";

const { values } = parseArgs({ options: { "dry-run": { type: "boolean", default: false } } });
const isDry = values["dry-run"];
const { repository, homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const isTrusted = process.env.NPM_CONFIG_PROVENANCE === "true";

/** @typedef {import("../workspace/packages.mjs").Package} Package */

/** @param {string} problem @returns {never} */
function stop(problem) {
  console.error(`[release] ${problem}`);
  process.exit(1);
}

/** All at once: each waits for npm most of the time. @param {readonly Package[]} releases */
async function publish(releases) {
  await Promise.all(
    releases.map(async ({ name, version, folder }) => {
      // All are built and looked at before.
      const options = ["--ignore-scripts", "--access", "public", ...(isDry ? ["--dry-run", "--json"] : [])];
      const { ok, stdout, stderr } = await start("npm", ["publish", folder, ...options], { quiet: isDry });
      if (!ok) stop(`${name} failed. ${stderr}`);
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

if (repository === undefined || homepage === undefined) {
  const cure =
    "the project has no public address: write it as `repository` and `homepage` (the site's) in the root package.json, and run npm run manifests.";
  if (!isDry) stop(cure);
  console.log(`[release] ${cure}`);
}
if (!isTrusted && !isDry && !mayPublish()) stop("npm does not know you. Run `npm login`, or set a token.");
checkManifests();
const platforms = await unpublished(platformPackages());
const unbuilt = platforms.filter(({ missing }) => missing.length > 0).map(({ name }) => name);
if (unbuilt.length > 0 && !isDry) stop(`the binaries of ${unbuilt.join(", ")} are missing. Build them, or place them.`);
for (const name of unbuilt) console.log(`${name} is not built here`);
await nx(["run-many", "--targets", "build"]);
await publish(platforms.filter(({ missing }) => missing.length === 0));
await publish(await unpublished(publicPackages()));
if (!isDry) process.exitCode = run("changeset", ["tag"]).status;
