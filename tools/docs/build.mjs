/** Builds the site in a folder of its own: the API from doc comments, the bundles that samples run on, the digits page, the pages. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build as buildPage } from "vite";
import { build } from "vitepress";
import { writeSmallDigits } from "../../e2e/browser-mnist/small-digits.mjs";
import { root, start } from "../workspace/run.mjs";
import { bundlePackages } from "./bundle.mjs";

const docs = join(root, "docs");

/** Copies the pages and adds what they need: the API and the bundles. @param {string} folder */
async function prepare(folder) {
  cpSync(docs, folder, { recursive: true, filter: (path) => !path.endsWith("tsconfig.json") }); // it is TypeDoc's
  cpSync(join(root, "LICENSE"), join(folder, "public/demos/licence.txt")); // a text to learn
  const out = ["--out", join(folder, "api"), "--docsRoot", folder];
  const [api] = await Promise.all([
    start("typedoc", ["--options", join(docs, "typedoc.json"), ...out, "--logLevel", "Warn"], { quiet: true }),
    bundlePackages(join(folder, "public/opt")),
    buildDigits(join(folder, "public/demos/digits")),
  ]);
  const complaints = api.stdout + api.stderr;
  if (!api.ok || complaints.trim() !== "") throw new Error(`[docs] TypeDoc complains:\n${complaints}`);
}

/** The digits page as it is, with few digits, and the way back. @param {string} outDir */
async function buildDigits(outDir) {
  writeSmallDigits(outDir);
  const back =
    '<footer><a href="../">All demos</a> · <a href="../../how-to/train-in-a-worker">Train in a Worker</a> · ';
  await buildPage({
    configFile: join(root, "e2e/browser-mnist/vite.config.ts"),
    base: "./",
    publicDir: false,
    logLevel: "warn",
    plugins: [{ name: "opt:way-back", transformIndexHtml: (html) => html.replace("<footer>", back) }],
    build: { outDir, emptyOutDir: false },
  });
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
