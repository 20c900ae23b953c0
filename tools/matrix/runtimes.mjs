/** The rows that need no browser: Node in several versions, Bun, Deno and workerd as npm brings them. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeOf } from "../packages.mjs";
import { start } from "../run.mjs";

/**
 * A row returns what the program printed last, or why the row cannot be tried here.
 * `verdict`: it is right without a result.
 * @typedef {{ name: string, run: () => Promise<{ line?: string, untried?: string, verdict?: string }> }} Row
 */

/** @param {string} command @param {string[]} args @param {string} folder @param {Record<string, string>} [env] */
async function lastLine(command, args, folder, env = {}) {
  const { ok, stdout, stderr } = await start(command, args, { quiet: true, cwd: folder, env, minutes: 3 });
  return { line: ok ? (stdout.trim().split("\n").at(-1) ?? "") : `${stdout}${stderr}`.trim() };
}

/** A binary of a package for this platform, whose install script did not run. @param {string} folder @param {string} scope @param {string} file */
function binary(folder, scope, file) {
  const packages = join(folder, "node_modules", scope);
  const names = existsSync(packages) ? readdirSync(packages) : [];
  return names.map((name) => join(packages, name, file)).find((path) => existsSync(path));
}

const WORKERD = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = (
    modules = [(name = "worker", esModule = embed "workerd-bundle.js")],
    compatibilityDate = "2026-01-01",
  ))],
);
`;

/** The runtime of Cloudflare's Workers: it compiles no WebAssembly that comes as bytes, so `js` trains. @param {string} folder @param {string} tools */
async function onWorkerd(folder, tools) {
  const program = binary(tools, "@cloudflare", "bin/workerd");
  if (program === undefined) return { untried: "npm has no binary for this platform" };
  const flags = ["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--external:node:*"];
  const files = ["workerd.mjs", "--outfile=workerd-bundle.js"];
  const built = await lastLine(join(tools, "node_modules/.bin/esbuild"), [...flags, ...files], folder);
  if (built.line !== "") return built;
  writeFileSync(join(folder, "workerd.capnp"), WORKERD);
  return lastLine(program, ["test", "workerd.capnp"], folder);
}

/** @param {string} folder @param {string} tools where bun and deno are installed @returns {Row[]} */
export function runtimeRows(folder, tools) {
  const nodeRows = ["20", "22", "24"].flatMap((version) =>
    [
      ["ESM", "node.mjs"],
      ["CommonJS", "node.cjs"],
      ["worker thread", "worker.mjs"],
    ].map(([form, file = ""]) => ({
      name: `Node ${version}, ${form}`,
      run: async () => {
        const program = await nodeOf(version);
        return program ? lastLine(program, [file], folder) : { untried: `npx cannot get node@${version}` };
      },
    })),
  );
  const program = (/** @type {string | undefined} */ path, /** @type {string[]} */ args) => async () =>
    path
      ? lastLine(path, args, folder, { DENO_DIR: join(tools, "deno-cache") })
      : { untried: "npm has no binary for this platform" };
  const bun = binary(tools, "@oven", "bin/bun");
  const deno = binary(tools, "@deno", "deno");
  const run = ["run", "--no-prompt", "--no-remote", "--no-lock", "--node-modules-dir=manual"];
  return [
    ...nodeRows,
    { name: "Bun, ESM", run: program(bun, ["run", "wasm.mjs"]) },
    { name: "Bun, every device", run: program(bun, ["run", "node.mjs"]) },
    { name: "Deno, all permissions", run: program(deno, [...run, "--allow-all", "node.mjs"]) },
    { name: "Deno, no permissions", run: program(deno, [...run, "node.mjs"]) },
    { name: "workerd (Cloudflare Workers)", run: () => onWorkerd(folder, tools) },
  ];
}
