/** The row of workerd, the runtime of Cloudflare's Workers: it compiles no WebAssembly that comes as bytes, so `js` trains. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { start } from "../run.mjs";
import { binary } from "./runtimes.mjs";

const WORKER = `import { train } from "./train.mjs";
export default { fetch: () => train().then((line) => new Response(line), (error) => new Response(String(error.stack))) };
`;

const CONFIGURATION = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "worker", esModule = embed "worker-bundle.js")],
    compatibilityDate = "2026-01-01",
  ))],
  sockets = [(name = "http", address = "127.0.0.1:PORT", http = (), service = "main")],
);
`;

/** @param {string} folder @param {string} tools @param {number} port */
async function answerOf(folder, tools, port) {
  const program = binary(tools, "@cloudflare", "bin/workerd");
  if (program === undefined) return { untried: "npm has no binary for this platform" };
  writeFileSync(join(folder, "worker-entry.mjs"), WORKER);
  const flags = ["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--external:node:*"];
  const esbuild = join(tools, "node_modules/.bin/esbuild");
  const built = await start(esbuild, ["worker-entry.mjs", ...flags, "--outfile=worker-bundle.js"], {
    quiet: true,
    cwd: folder,
  });
  if (!built.ok) return { line: `${built.stdout}${built.stderr}`.trim() };
  writeFileSync(join(folder, "workerd.capnp"), CONFIGURATION.replace("PORT", String(port)));
  const server = spawn(program, ["serve", "workerd.capnp"], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  server.stderr.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  try {
    for (let tries = 0; tries < 300 && server.exitCode === null; tries++) {
      const response = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
      if (response !== undefined) return { line: await response.text() };
      await sleep(100);
    }
    return { line: `workerd does not answer. ${said}` };
  } finally {
    server.kill();
  }
}

/** @param {string} folder @param {string} tools @returns {import("./runtimes.mjs").Row[]} */
export function workerdRows(folder, tools) {
  const port = 20_000 + (process.pid % 20_000);
  return [{ name: "workerd (Cloudflare Workers)", run: () => answerOf(folder, tools, port) }];
}
