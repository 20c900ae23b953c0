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

const SITE_LINKS = {
  Learn: "learn/",
  "How-to": "how-to/",
  Guides: "guides/",
  API: "api/",
  Demos: "demos/",
  Playground: "playground",
};

/** The digits page as it is, with few digits, the site's header, and the way back. @param {string} outDir */
async function buildDigits(outDir) {
  writeSmallDigits(outDir);
  const back =
    '<footer><a href="../">All demos</a> · <a href="../../how-to/train-in-a-worker">Train in a Worker</a> · ';
  const links = Object.entries(SITE_LINKS).map(
    ([text, path]) => `<a href="../../${path}"${text === "Demos" ? ' aria-current="true"' : ""}>${text}</a>`,
  );
  const logo = '<img src="../../logo.svg" alt="" width="24" height="24">';
  const bar = `<nav class="site" aria-label="Site"><a href="../../">${logo} Opt</a>${links.join("")}</nav>`;
  const icon = '<link rel="icon" type="image/svg+xml" href="../../logo.svg" />';
  await buildPage({
    configFile: join(root, "e2e/browser-mnist/vite.config.ts"),
    base: "./",
    publicDir: false,
    logLevel: "warn",
    plugins: [
      {
        name: "opt:as-of-the-site",
        transformIndexHtml: (html) =>
          html
            .replace("<footer>", back)
            .replace("<header>", `${bar}<header>`)
            .replace(/<link rel="icon".*>/, icon),
      },
    ],
    build: { outDir, emptyOutDir: false },
  });
}

/** @param {string} text */
const say = (text) => console.log(`docs: ${text}`);

/** @param {string} outDir */
export async function buildSite(outDir) {
  const begun = performance.now();
  mkdirSync(join(root, "runs"), { recursive: true });
  const folder = mkdtempSync(join(root, "runs/site-")); // inside the workspace, where packages are found
  try {
    say("1 of 2: the API from doc comments, the packages' bundles, the digits page (a minute or two)");
    await prepare(folder);
    say("2 of 2: the pages (some minutes)");
    await build(folder, { outDir });
    say(`done in ${Math.round((performance.now() - begun) / 1000)} s`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
