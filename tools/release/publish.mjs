/** `npm run release`: publishes what npm does not have yet, the platforms' binaries before the packages that ask for them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkManifests } from "../manifests.mjs";
import { build } from "../packages.mjs";
import { root, run } from "../run.mjs";
import { checkLowestPeers } from "./peers.mjs";
import { publish } from "./platforms.mjs";

const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
if (repository === undefined && process.env.NPM_CONFIG_PROVENANCE === "true")
  throw new Error("[release] provenance needs `repository` in package.json; then run tools/manifests.mjs.");
checkManifests();
await build();
await checkLowestPeers();
await publish();
process.exitCode = run("changeset", ["publish"]).status;
