/** The rows of browsers: each bundler's output, and the packages as they are behind an import map, in headless Chromium. */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { executablePath, launchBrowser } from "@opt/testkit/browser";
import { serve } from "../../../tools/docs/serve.mjs";
import { installIn } from "../../../tools/workspace/packages.mjs";
import { start } from "../../../tools/workspace/run.mjs";
import type { Place, Row } from "./runtimes";

const PATIENCE_MS = 60_000;

type Headers = Record<string, string>;

const WORKER_PAGE =
  'new Worker("./bundle.js", { type: "module" }).onmessage = ({ data }) => { globalThis.line = data; };';

const page = (script: string, head = "") =>
  `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${head}<script type="module" src="${script}"></script>`;

const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
const WASM_POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
const POLICIES: Record<string, Headers> = {
  "plain page": {},
  "CSP script-src 'self' 'wasm-unsafe-eval'": { "content-security-policy": WASM_POLICY },
  "CSP with worker-src 'self' blob:, isolated": {
    ...ISOLATED,
    "content-security-policy": `${WASM_POLICY}; worker-src 'self' blob:; object-src 'none'`,
  },
  "CSP script-src 'self'": { "content-security-policy": "default-src 'self'; script-src 'self'" },
};

/** Opens a folder's page, and waits for its line. */
async function lineOf(folder: string, headers: Headers = ISOLATED) {
  if (executablePath === undefined) return { untried: "no Chromium" };
  const server = await serve(folder, 0, headers);
  const browser = await launchBrowser({ webgpu: false });
  try {
    const tab = await browser.newPage();
    const problems: string[] = [];
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
    await server.close();
  }
}

/** What each bundler is told beside its inputs, to write `bundle.js` into a folder. */
const COMMANDS: Record<string, (entry: string, out: string) => string> = {
  esbuild: (entry, out) => `${entry} --bundle --format=esm --minify --external:node:* --outfile=${out}/bundle.js`,
  rollup: (entry, out) =>
    `${entry} --plugin node-resolve={browser:true} --format es --failAfterWarnings --dir ${out} --entryFileNames bundle.js`,
  // h5wasm is an optional peer, which webpack misses.
  webpack: (entry, out) =>
    `--entry ./${entry} --mode production --output-path ${out} --output-filename bundle.js --fail-on-warnings --ignore-warnings /h5wasm/ --no-performance`,
  vite: (_, out) => `build --config vite.config.mjs --outDir ${out} --emptyOutDir false --logLevel warn`,
};

/** Next: a client component of an app router, built and exported as files. */
const NEXT: Record<string, string> = {
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

async function withNext({ folder, tarballs }: Place) {
  const app = join(folder, "../next");
  await installIn(app, ["next@16", "react@19", "react-dom@19", ...tarballs]);
  mkdirSync(join(app, "app"));
  for (const [name, text] of Object.entries(NEXT)) writeFileSync(join(app, name), text);
  cpSync(join(folder, "train.mjs"), join(app, "train.mjs"));
  const env = { NEXT_TELEMETRY_DISABLED: "1", NODE_ENV: "production" };
  const next = join(app, "node_modules/next/dist/bin/next");
  const { ok, stdout, stderr } = await start(process.execPath, [next, "build"], { quiet: true, cwd: app, env });
  return ok ? lineOf(join(app, "out")) : { line: `${stdout}${stderr}`.trim() };
}

const row = (name: string, bundler: string, entry: string, headers?: Headers): Row => ({
  name,
  run: async ({ folder, tools }) => {
    const out = join(folder, "out", name.replace(/\W+/g, "-"));
    mkdirSync(out, { recursive: true });
    const config = `export default { build: { lib: { entry: ${JSON.stringify(entry)}, formats: ["es"], fileName: () => "bundle.js" } } };`;
    writeFileSync(join(folder, "vite.config.mjs"), config);
    writeFileSync(join(out, "worker.js"), WORKER_PAGE);
    writeFileSync(join(out, "index.html"), page(entry === "page-worker.mjs" ? "./worker.js" : "./bundle.js"));
    const modules = join(tools, "node_modules");
    const path = [join(modules, ".bin"), process.env.PATH].join(delimiter);
    const env = { PATH: path, NODE_PATH: modules, NODE_ENV: "production" };
    const args = COMMANDS[bundler]?.(entry, out).split(" ") ?? [];
    const command = join(modules, ".bin", bundler);
    const { ok, stdout, stderr } = await start(command, args, { quiet: true, cwd: folder, env });
    return ok ? lineOf(out, headers) : { line: `${stdout}${stderr}`.trim() };
  },
});

export const pageRows: readonly Row[] = [
  ...Object.keys(COMMANDS).map((bundler) => row(`${bundler}, page in Chromium`, bundler, "page.mjs")),
  ...["vite", "webpack"].map((bundler) => row(`${bundler}, fit in a Web Worker in Chromium`, bundler, "fit-page.mjs")),
  row("esbuild, Web Worker in Chromium", "esbuild", "page-worker.mjs"),
  ...Object.entries(POLICIES).map(([policy, headers]) => row(`Chromium, ${policy}`, "esbuild", "page.mjs", headers)),
  { name: "import map, page in Chromium", run: importMap },
  { name: "addresses of packages, fit in a Web Worker in Chromium", run: withAddresses },
  { name: "Next 16, client component in Chromium", run: withNext },
];

/** The packages' own files by the names of packages. */
function addresses(folder: string): Record<string, string> {
  const modules = join(folder, "node_modules");
  const imports: Record<string, string> = {
    "@petamoriken/float16": "/node_modules/@petamoriken/float16/browser/float16.mjs",
  };
  for (const name of readdirSync(join(modules, "@opt"))) {
    const { exports = {} } = JSON.parse(readFileSync(join(modules, "@opt", name, "package.json"), "utf8"));
    for (const [entry, target] of Object.entries<{ default?: string }>(exports)) {
      if (target.default) imports[join("@opt", name, entry)] = join("/node_modules/@opt", name, target.default);
    }
  }
  return imports;
}

/** No bundler: an import map. */
async function importMap({ folder }: Place) {
  const head = `<script type="importmap">${JSON.stringify({ imports: addresses(folder) })}</script>`;
  writeFileSync(join(folder, "index.html"), page("/page.mjs", head));
  return lineOf(folder);
}

/** No bundler, and a worker, which has no import map: files with addresses in place of names, as CDNs of modules serve them. */
async function withAddresses({ folder }: Place) {
  const out = join(folder, "out/addresses");
  const imports = addresses(folder);
  const parts = ["fit-page.mjs", "fit-worker.mjs", "node_modules/@opt"];
  for (const part of parts) cpSync(join(folder, part), join(out, part), { recursive: true });
  for (const file of readdirSync(out, { recursive: true, encoding: "utf8" }).filter((name) => /\.m?js$/.test(name))) {
    const text = readFileSync(join(out, file), "utf8");
    const address = (all: string, before: string, name: string) =>
      name in imports ? `${before}"${imports[name]}"` : all;
    writeFileSync(join(out, file), text.replace(/((?:from|import)\s*\(?\s*)"(@[^"]+)"/g, address));
  }
  writeFileSync(join(out, "index.html"), page("/fit-page.mjs"));
  return lineOf(out);
}
