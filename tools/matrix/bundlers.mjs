/** The rows of browsers: each bundler's output, and the packages as they are behind an import map, in headless Chromium. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { start } from "../run.mjs";

/** @typedef {import("./runtimes.mjs").Row} Row */

const CHROMIUM = [
  process.env.OPT_CHROMIUM ?? "",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

const WORKER_PAGE =
  'new Worker("./bundle.js", { type: "module" }).onmessage = ({ data }) => { globalThis.line = data; };';

/** @param {string} body @param {string} [head] */
const page = (body, head = "") => `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">${head}${body}`;

/** Serves a folder on this machine, cross-origin isolated or not. @param {string} folder @param {Record<string, string>} headers */
async function serve(folder, headers) {
  const server = createServer((request, response) => {
    const path = join(folder, decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname));
    const file = path.endsWith("/") ? `${path}index.html` : path;
    const type = file.endsWith(".html") ? "text/html" : "text/javascript";
    if (!existsSync(file)) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": type, ...headers }).end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}/`,
    close: () => server.close(),
  };
}

export const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };
/** @type {Record<string, Record<string, string>>} */
const POLICIES = {
  "isolated page": ISOLATED,
  "plain page": {},
  "CSP script-src 'self' 'wasm-unsafe-eval'": {
    "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
  },
  "CSP with worker-src 'self' blob:, isolated": {
    ...ISOLATED,
    "content-security-policy":
      "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; object-src 'none'",
  },
  "CSP script-src 'self'": { "content-security-policy": "default-src 'self'; script-src 'self'" },
};

/** @param {string} folder @param {Record<string, string>} headers */
export async function openPage(folder, headers) {
  const executablePath = CHROMIUM.find((path) => path && existsSync(path));
  if (executablePath === undefined) return { untried: "no Chromium" };
  const { chromium } = await import("playwright-core");
  const server = await serve(folder, headers);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-quic"] });
  try {
    const tab = await browser.newPage();
    /** @type {string[]} */
    const problems = [];
    tab.on("pageerror", (error) => problems.push(error.message));
    await tab.goto(server.url);
    const waited = await tab.waitForFunction("globalThis.line", undefined, { timeout: 60_000 }).catch(() => undefined);
    return { line: waited ? String(await waited.jsonValue()) : `nothing happened. ${problems.join(" ")}` };
  } finally {
    await browser.close();
    server.close();
  }
}

/** The commands that write `out/bundle.js`. @param {string} entry @param {string} out @returns {Record<string, [string, string[]]>} */
function commands(entry, out) {
  return {
    esbuild: [
      "esbuild",
      [entry, "--bundle", "--format=esm", "--minify", "--external:node:*", `--outfile=${out}/bundle.js`],
    ],
    Rollup: [
      "rollup",
      [
        entry,
        "--plugin",
        "node-resolve={browser:true}",
        "--format",
        "es",
        "--failAfterWarnings",
        "--file",
        `${out}/bundle.js`,
      ],
    ],
    webpack: [
      "webpack",
      [
        "--entry",
        `./${entry}`,
        "--mode",
        "production",
        "--output-path",
        out,
        "--output-filename",
        "bundle.js",
        "--fail-on-warnings",
        "--no-performance",
      ],
    ],
    Vite: [
      "vite",
      ["build", "--config", "vite.config.mjs", "--outDir", out, "--emptyOutDir", "false", "--logLevel", "warn"],
    ],
  };
}

/** @param {string} folder with the packages installed @param {string} tools where the bundlers are installed @returns {Row[]} */
export function bundlerRows(folder, tools) {
  const bundle = async (/** @type {string} */ name, /** @type {string} */ entry) => {
    const out = join(folder, "out", `${name}-${entry}`.replace(/\W+/g, "-"));
    mkdirSync(out, { recursive: true });
    const config = `export default { build: { lib: { entry: ${JSON.stringify(entry)}, formats: ["es"], fileName: () => "bundle.js" } } };`;
    writeFileSync(join(folder, "vite.config.mjs"), config);
    const [command, args] = commands(entry, out)[name] ?? ["", []];
    const path = [join(tools, "node_modules/.bin"), process.env.PATH].join(":");
    const env = { PATH: path, NODE_PATH: join(tools, "node_modules"), NODE_ENV: "production" };
    const { ok, stdout, stderr } = await start(join(tools, "node_modules/.bin", command), args, {
      quiet: true,
      cwd: folder,
      env,
    });
    const body =
      entry === "page-worker.mjs"
        ? '<script type="module" src="./main.js"></script>'
        : '<script type="module" src="./bundle.js"></script>';
    writeFileSync(join(out, "main.js"), WORKER_PAGE);
    writeFileSync(join(out, "index.html"), page(body));
    return ok ? { out } : { problem: `${stdout}${stderr}`.trim() };
  };
  const row = (
    /** @type {string} */ name,
    /** @type {string} */ bundler,
    /** @type {string} */ entry,
    policy = "isolated page",
  ) => ({
    name,
    run: async () => {
      const { out, problem } = await bundle(bundler, entry);
      return out ? openPage(out, POLICIES[policy] ?? {}) : { line: problem };
    },
  });
  return [
    ...["Vite", "webpack", "esbuild", "Rollup"].map((bundler) =>
      row(`${bundler}, page in Chromium`, bundler, "page.mjs"),
    ),
    row("esbuild, Web Worker in Chromium", "esbuild", "page-worker.mjs"),
    ...Object.keys(POLICIES)
      .slice(1)
      .map((policy) => row(`Chromium, ${policy}`, "esbuild", "page.mjs", policy)),
    { name: "import map, page in Chromium", run: () => importMap(folder) },
  ];
}

/** No bundler: the packages' own files, found by an import map. @param {string} folder */
async function importMap(folder) {
  const modules = join(folder, "node_modules");
  /** @type {Record<string, string>} */
  const imports = { "@petamoriken/float16": "/node_modules/@petamoriken/float16/browser/float16.mjs" };
  for (const name of readdirSync(join(modules, "@opt"))) {
    const { exports = {} } = JSON.parse(readFileSync(join(modules, "@opt", name, "package.json"), "utf8"));
    for (const [entry, target] of Object.entries(exports)) {
      if (target.default) imports[join("@opt", name, entry)] = join("/node_modules/@opt", name, target.default);
    }
  }
  const head = `<script type="importmap">${JSON.stringify({ imports })}</script>`;
  writeFileSync(join(folder, "index.html"), page('<script type="module" src="/page.mjs"></script>', head));
  return openPage(folder, ISOLATED);
}
