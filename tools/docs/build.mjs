/** Builds the site: the API from doc comments, the bundles that samples run on, the pages. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "vitepress";
import { root, start } from "../run.mjs";
import { bundlePackages } from "./bundle.mjs";

const docs = join(root, "docs");

/** Writes docs/api and docs/public/opt, which the pages need. */
export async function prepare() {
  rmSync(join(docs, "api"), { recursive: true, force: true });
  const [api] = await Promise.all([
    start("typedoc", ["--options", join(docs, "typedoc.json"), "--logLevel", "Warn"], { quiet: true }),
    bundlePackages(join(docs, "public/opt")),
  ]);
  const complaints = api.stdout + api.stderr;
  if (!api.ok || complaints.trim() !== "") throw new Error(`[docs] TypeDoc complains:\n${complaints}`);
}

/** @param {string} outDir */
export async function buildSite(outDir) {
  await prepare();
  await build(docs, { outDir });
}
