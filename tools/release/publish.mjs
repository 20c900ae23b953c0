/** `npm run release`: publishes what npm does not have yet, the platforms' binaries before the packages that ask for them, and tags them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkManifests } from "../manifests.mjs";
import { build, publicPackages, stage, withStage } from "../packages.mjs";
import { root, run, start } from "../run.mjs";
import { checkLowestPeers } from "./peers.mjs";
import { isPublished, publish } from "./platforms.mjs";

const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
if (repository === undefined && process.env.NPM_CONFIG_PROVENANCE === "true")
  throw new Error("[release] provenance needs `repository` in package.json; then run tools/manifests.mjs.");
checkManifests();
await build();
await checkLowestPeers();
await publish();
await withStage(async (folder) => {
  await Promise.all(
    publicPackages().map(async (each) => {
      if (await isPublished(each.name, each.version)) return;
      const { ok } = await start("npm", ["publish", stage(each, folder), "--access", "public"]);
      if (!ok) throw new Error(`[release] ${each.name} failed.`);
    }),
  );
});
process.exitCode = run("changeset", ["tag"]).status;
