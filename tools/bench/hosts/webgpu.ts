/** `npm run bench:webgpu`: optimizer steps on WebGPU in headless Chromium, beside TF.js and jax-js, interleaved in one page. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { builtinModules } from "node:module";
import type { AddressInfo } from "node:net";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { chromium } from "playwright-core";
import type { OptimizerWork } from "../optimizer-work";

const folder = fileURLToPath(new URL(".", import.meta.url));
const out = fileURLToPath(new URL("../../../runs/bench/", import.meta.url));
const executablePath = process.env.OPT_CHROMIUM ?? "/usr/bin/chromium";
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

async function bundle(contents: string, resolveDir: string): Promise<string> {
  const options: BuildOptions = { bundle: true, write: false, format: "esm", platform: "browser", target: "es2022" };
  const { outputFiles } = await build({
    ...options,
    stdin: { contents, resolveDir, loader: "ts" },
    conditions: ["@opt/source"],
    plugins: [withoutNode],
    logLevel: "error",
  });
  return outputFiles![0]!.text;
}

if (!existsSync(executablePath)) {
  console.error("Needs Chromium (OPT_CHROMIUM names it).");
  process.exit(1);
}

const files: Record<string, string> = {
  "/": "<!doctype html><title>bench</title><script type=module src=/page.js></script>",
  "/page.js": await bundle(`import "./webgpu-page";`, folder),
  "/tfjs.js": await bundle(
    `import "@tensorflow/tfjs-backend-webgpu";
    export { dispose, getBackend, ready, setBackend, slice, tensor1d, train, variable } from "@tensorflow/tfjs-core";`,
    folder,
  ),
};

const server = createServer(({ url }, response) => {
  const file = files[url ?? ""];
  const type = url === "/" ? "text/html" : "text/javascript";
  response.writeHead(file === undefined ? 404 : 200, { "Content-Type": type }).end(file);
}).listen(0, "127.0.0.1");

const browser = await chromium.launch({
  executablePath,
  args: [
    "--no-sandbox",
    "--disable-quic",
    "--enable-unsafe-webgpu",
    "--enable-features=Vulkan",
    ...(process.env.OPT_WEBGPU_ADAPTER === "hardware" ? [] : ["--use-webgpu-adapter=swiftshader"]),
  ],
});
try {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(`http://localhost:${(server.address() as AddressInfo).port}/`);
  await page.waitForFunction(() => "benchmark" in globalThis);
  const lines = [
    `# Optimizer steps on WebGPU`,
    "",
    `${browser.version()}, ${cpus()[0]!.model}, ${cpus().length} cores`,
    "",
  ];
  for (const work of WORKS) {
    const report = await page.evaluate(([each, rounds]) => globalThis.benchmark(each, rounds), [work, ROUNDS] as const);
    const [ours] = report.measurements;
    lines.push(`## ${work.optimizer}, ${work.tensors} x ${work.size}`, "");
    lines.push("| | ms per step, median | quartiles | times ours |", "|---|---|---|---|");
    for (const { name, median, quartiles } of report.measurements) {
      const range = quartiles.map((value) => value.toFixed(1)).join(" – ");
      lines.push(`| ${name} | ${median.toFixed(1)} | ${range} | ${(median / ours!.median).toFixed(2)} |`);
    }
    for (const { name, reason } of report.absent) lines.push(`| ${name} | ${reason} | | |`);
    lines.push("");
  }
  mkdirSync(out, { recursive: true });
  writeFileSync(`${out}webgpu.md`, lines.join("\n"));
  console.log(lines.join("\n"));
} finally {
  await browser.close();
  server.close();
}
