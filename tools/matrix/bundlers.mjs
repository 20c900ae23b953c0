/** The rows of browsers: each bundler's output, and the packages as they are behind an import map, in headless Chromium. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";
import { serve } from "../docs/serve.mjs";
import { installIn } from "../packages.mjs";
import { start } from "../run.mjs";

/** @typedef {import("./runtimes.mjs").Row} Row */

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PATIENCE_MS = 60_000;

const WORKER_PAGE =
  'new Worker("./bundle.js", { type: "module" }).onmessage = ({ data }) => { globalThis.line = data; };';

/** @param {string} script @param {string} [head] */
const page = (script, head = "") =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${head}<script type="module" src="${script}"></script>`;

const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
const WASM_POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
/** @type {Record<string, Record<string, string>>} */
const POLICIES = {
  "plain page": {},
  "CSP script-src 'self' 'wasm-unsafe-eval'": { "content-security-policy": WASM_POLICY },
  "CSP with worker-src 'self' blob:, isolated": {
    ...ISOLATED,
    "content-security-policy": `${WASM_POLICY}; worker-src 'self' blob:; object-src 'none'`,
  },
  "CSP script-src 'self'": { "content-security-policy": "default-src 'self'; script-src 'self'" },
};

/** Opens a folder's page, and waits for its line. @param {string} folder @param {Record<string, string>} [headers] */
async function openPage(folder, headers = ISOLATED) {
  const executablePath = process.env.OPT_CHROMIUM ?? CHROMIUM.find((path) => existsSync(path));
  if (executablePath === undefined) return { untried: "no Chromium" };
  const server = await serve(folder, 0, headers);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-quic"] });
  try {
    const tab = await browser.newPage();
    /** @type {string[]} */
    const problems = [];
    tab.on("pageerror", (error) => problems.push(error.message));
    await tab.goto(server.address);
    // Not waitForFunction: it evaluates text in the page, which some policies forbid.
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; await tab.waitForTimeout(100)) {
      const line = await tab.evaluate("globalThis.line");
      if (line !== undefined) return { line: String(line) };
    }
    return { line: `nothing happened. ${problems.join(" ")}` };
  } finally {
    await browser.close();
    server.close();
  }
}

/** What each bundler is told beside its inputs, to write `bundle.js` into a folder. @type {Record<string, (entry: string, out: string) => string>} */
const COMMANDS = {
  esbuild: (entry, out) => `${entry} --bundle --format=esm --minify --external:node:* --outfile=${out}/bundle.js`,
  rollup: (entry, out) =>
    `${entry} --plugin node-resolve={browser:true} --format es --failAfterWarnings --dir ${out} --entryFileNames bundle.js`,
  // h5wasm is an optional peer, which webpack misses.
  webpack: (entry, out) =>
    `--entry ./${entry} --mode production --output-path ${out} --output-filename bundle.js --fail-on-warnings --ignore-warnings /h5wasm/ --no-performance`,
  vite: (_, out) => `build --config vite.config.mjs --outDir ${out} --emptyOutDir false --logLevel warn`,
};

/** Next: a client component of an app router, built and exported as files. @type {Record<string, string>} */
const NEXT = {
  "next.config.mjs": 'export default { output: "export", turbopack: { root: import.meta.dirname } };\n',
  "app/layout.jsx": 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;\n',
  "app/page.jsx": `"use client";
import { useEffect, useState } from "react";
import { train } from "../train.mjs";
export default function Page() {
  const [line, setLine] = useState("");
  useEffect(() => {
    train().then(setLine, (error) => setLine(String(error.stack)));
  }, []);
  useEffect(() => {
    if (line !== "") globalThis.line = line;
  }, [line]);
  return <p>{line}</p>;
}
`,
};

/** @param {string} folder with the packages and the program @param {readonly string[]} tarballs */
async function withNext(folder, tarballs) {
  const app = join(folder, "../next");
  await installIn(app, ["next@16", "react@19", "react-dom@19", ...tarballs]);
  mkdirSync(join(app, "app"));
  for (const [name, text] of Object.entries(NEXT)) writeFileSync(join(app, name), text);
  cpSync(join(folder, "train.mjs"), join(app, "train.mjs"));
  const env = { NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };
  const next = join(app, "node_modules/next/dist/bin/next");
  const { ok, stdout, stderr } = await start(process.execPath, [next, "build"], { quiet: true, cwd: app, env });
  return ok ? openPage(join(app, "out")) : { line: `${stdout}${stderr}`.trim() };
}

/**
 * @param {string} folder with the packages installed
 * @param {string} tools where the bundlers are installed
 * @param {readonly string[]} tarballs
 * @returns {Row[]}
 */
export function bundlerRows(folder, tools, tarballs) {
  /** @param {string} name @param {string} bundler @param {string} entry @param {Record<string, string>} [headers] @returns {Row} */
  const row = (name, bundler, entry, headers) => ({
    name,
    run: async () => {
      const out = join(folder, "out", `${bundler}-${entry}`.replace(/\W+/g, "-"));
      mkdirSync(out, { recursive: true });
      const config = `export default { build: { lib: { entry: ${JSON.stringify(entry)}, formats: ["es"], fileName: () => "bundle.js" } } };`;
      writeFileSync(join(folder, "vite.config.mjs"), config);
      writeFileSync(join(out, "worker.js"), WORKER_PAGE);
      writeFileSync(join(out, "index.html"), page(entry === "page-worker.mjs" ? "./worker.js" : "./bundle.js"));
      const bin = join(tools, "node_modules/.bin");
      const env = {
        PATH: [bin, process.env.PATH].join(delimiter),
        NODE_PATH: join(tools, "node_modules"),
        NODE_ENV: "production",
      };
      const args = COMMANDS[bundler]?.(entry, out).split(" ") ?? [];
      const { ok, stdout, stderr } = await start(join(bin, bundler), args, { quiet: true, cwd: folder, env });
      return ok ? openPage(out, headers) : { line: `${stdout}${stderr}`.trim() };
    },
  });
  return [
    ...Object.keys(COMMANDS).map((bundler) => row(`${bundler}, page in Chromium`, bundler, "page.mjs")),
    ...["vite", "webpack"].map((bundler) =>
      row(`${bundler}, fit in a Web Worker in Chromium`, bundler, "fit-page.mjs"),
    ),
    row("esbuild, Web Worker in Chromium", "esbuild", "page-worker.mjs"),
    ...Object.entries(POLICIES).map(([policy, headers]) => row(`Chromium, ${policy}`, "esbuild", "page.mjs", headers)),
    { name: "import map, page in Chromium", run: () => importMap(folder) },
    { name: "addresses of packages, fit in a Web Worker in Chromium", run: () => withAddresses(folder) },
    { name: "Next 16, client component in Chromium", run: () => withNext(folder, tarballs) },
  ];
}

/** The packages' own files by the names of packages. @param {string} folder */
function addresses(folder) {
  const modules = join(folder, "node_modules");
  /** @type {Record<string, string>} */
  const imports = { "@petamoriken/float16": "/node_modules/@petamoriken/float16/browser/float16.mjs" };
  for (const name of readdirSync(join(modules, "@opt"))) {
    const { exports = {} } = JSON.parse(readFileSync(join(modules, "@opt", name, "package.json"), "utf8"));
    for (const [entry, target] of Object.entries(exports)) {
      if (target.default) imports[join("@opt", name, entry)] = join("/node_modules/@opt", name, target.default);
    }
  }
  return imports;
}

/** No bundler: an import map. @param {string} folder */
async function importMap(folder) {
  const head = `<script type="importmap">${JSON.stringify({ imports: addresses(folder) })}</script>`;
  writeFileSync(join(folder, "index.html"), page("/page.mjs", head));
  return openPage(folder);
}

/** No bundler, and a worker, which has no import map: files with addresses in place of names, as CDNs of modules serve them. @param {string} folder */
async function withAddresses(folder) {
  const out = join(folder, "out/addresses");
  const imports = addresses(folder);
  const parts = ["fit-page.mjs", "fit-worker.mjs", "node_modules/@opt"];
  for (const part of parts) cpSync(join(folder, part), join(out, part), { recursive: true });
  for (const file of readdirSync(out, { recursive: true, encoding: "utf8" }).filter((name) => /\.m?js$/.test(name))) {
    const text = readFileSync(join(out, file), "utf8");
    const address = (/** @type {string} */ all, /** @type {string} */ before, /** @type {string} */ name) =>
      name in imports ? `${before}"${imports[name]}"` : all;
    writeFileSync(join(out, file), text.replace(/((?:from|import)\s*\(?\s*)"(@[^"]+)"/g, address));
  }
  writeFileSync(join(out, "index.html"), page("/fit-page.mjs"));
  return openPage(out);
}
