/** `node tools/release/needed.mjs` says for the release workflow what is to be done. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { platformPackages } from "../workspace/platforms.mjs";
import { root } from "../workspace/run.mjs";
import { unpublished } from "./unpublished.mjs";

// Versions are made of the changesets that wait. Only then the binaries of these versions are built.
const waiting = readdirSync(join(root, ".changeset")).some((name) => name.endsWith(".md"));
const native = !waiting && (await unpublished(platformPackages())).length > 0;
console.log(`waiting=${waiting}\nnative=${native}`);
