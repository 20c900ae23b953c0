/** Builds the site in a folder of its own: the API from doc comments, the bundles that samples run on, the pages. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "vitepress";
import { root, start } from "../run.mjs";
import { bundlePackages } from "./bundle.mjs";

const docs = join(root, "docs");

/** Copies the pages and adds what they need: the API and the bundles. @param {string} folder */
async function prepare(folder) {
  cpSync(docs, folder, { recursive: true, filter: (path) => !path.endsWith("tsconfig.json") }); // it is TypeDoc's
  const out = ["--out", join(folder, "api"), "--docsRoot", folder];
  const [api] = await Promise.all([
    start("typedoc", ["--options", join(docs, "typedoc.json"), ...out, "--logLevel", "Warn"], { quiet: true }),
    bundlePackages(join(folder, "public/opt")),
  ]);
  const complaints = api.stdout + api.stderr;
  if (!api.ok || complaints.trim() !== "") throw new Error(`[docs] TypeDoc complains:\n${complaints}`);
}

/** @param {string} outDir */
export async function buildSite(outDir) {
  mkdirSync(join(root, "runs"), { recursive: true });
  const folder = mkdtempSync(join(root, "runs/site-")); // inside the workspace, where packages are found
  try {
    await prepare(folder);
    await build(folder, { outDir });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
