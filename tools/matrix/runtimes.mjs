/** The rows that need no browser: Node in several versions, Bun and Deno as npm brings them. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { nodeOf } from "../packages.mjs";
import { start } from "../run.mjs";

/**
 * A row returns what the program printed last, or why the row cannot be tried here.
 * `verdict`: it is right without a result.
 * @typedef {{ name: string, run: () => Promise<{ line?: string, untried?: string, verdict?: string }> }} Row
 */

/** @param {string} command @param {string[]} args @param {string} folder @param {Record<string, string>} [env] */
export async function lastLine(command, args, folder, env = {}) {
  const { ok, stdout, stderr } = await start(command, args, { quiet: true, cwd: folder, env, minutes: 3 });
  return { line: ok ? (stdout.trim().split("\n").at(-1) ?? "") : `${stdout}${stderr}`.trim() };
}

/** A binary of a package for this platform, whose install script did not run. @param {string} folder @param {string} scope @param {string} file */
export function binary(folder, scope, file) {
  const packages = join(folder, "node_modules", scope);
  if (!existsSync(packages)) return undefined;
  return readdirSync(packages)
    .map((name) => join(packages, name, file))
    .find((path) => existsSync(path));
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
  ];
}
