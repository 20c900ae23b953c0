/** `npm run bench:webgpu`: optimizer steps on WebGPU in headless Chromium, beside TF.js and jax-js, interleaved in one page. */
import { mkdirSync, writeFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { fileURLToPath } from "node:url";
import { executablePath, launchBrowser, openPage } from "@opt/testkit/browser";
import { build, type Plugin } from "esbuild";
import { serve } from "../../docs/serve.mjs";
import { machine } from "../machine";
import type { OptimizerWork } from "../optimizer-work";
import { markdown, type Table } from "../report";

const out = fileURLToPath(new URL("../../../runs/bench/webgpu/", import.meta.url));
const ROUNDS = 7;
const WORKS: readonly OptimizerWork[] = [
  { optimizer: "AdamW", tensors: 1, size: 2 ** 20 },
  { optimizer: "AdamW", tensors: 100, size: 1000 },
];

/** TF.js' index reaches its own tests, and through them what only Node has. */
const withoutNode: Plugin = {
  name: "without Node",
  setup({ onResolve, onLoad }) {
    const absent = new RegExp(`^(${[...builtinModules, "coveralls", "jasmine", "jasmine-core/.*"].join("|")})$`);
    onResolve({ filter: absent }, ({ path }) => ({ path, namespace: "absent" }));
    onLoad({ filter: /.*/, namespace: "absent" }, () => ({ contents: "module.exports = {};" }));
  },
};

if (executablePath === undefined) throw new Error("[bench] Chromium is missing. Install it, or set OPT_CHROMIUM.");
await build({
  ...{ bundle: true, format: "esm", platform: "browser", target: "es2022", logLevel: "error" },
  entryPoints: { page: fileURLToPath(new URL("webgpu-page.ts", import.meta.url)) },
  outdir: out,
  conditions: ["@opt/source"],
  plugins: [withoutNode],
});
mkdirSync(out, { recursive: true });
writeFileSync(`${out}index.html`, "<!doctype html><title>bench</title><script type=module src=/page.js></script>");
const [browser, { address, close }] = await Promise.all([launchBrowser(), serve(out)]);
try {
  const page = await openPage(browser);
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(address);
  await page.waitForFunction(() => "benchmark" in globalThis);
  const tables: Table[] = [];
  for (const work of WORKS) {
    const measured = await page.evaluate(([each, rounds]) => globalThis.benchmark(each, rounds), [
      work,
      ROUNDS,
    ] as const);
    const title = `${work.optimizer}, ${work.tensors} x ${work.size}, WebGPU in Chromium ${browser.version()}`;
    tables.push({ title, rate: undefined, ...measured });
  }
  const date = new Date().toISOString().slice(0, 10);
  const report = markdown({ machine: machine(), node: process.version, date, tables });
  writeFileSync(`${out}report.md`, report);
  console.log(report);
} finally {
  await browser.close();
  close();
}
