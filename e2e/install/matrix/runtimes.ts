/** The rows that need no browser: Node in several versions, Bun, Deno and workerd as npm brings them. */
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeOf } from "../../../tools/workspace/packages.mjs";
import { start } from "../../../tools/workspace/run.mjs";

/** `folder` has the packages and the programs, `tools` the runtimes and bundlers. */
export interface Place {
  readonly folder: string;
  readonly tools: string;
  readonly tarballs: readonly string[];
}

export interface Row {
  readonly name: string;
  /** What the program printed last, or why the row cannot be tried here. */
  run(place: Place): Promise<{ line?: string; untried?: string }>;
}

async function lastLine(command: string, args: string[], cwd: string, env: Record<string, string> = {}) {
  const { ok, stdout, stderr } = await start(command, args, { quiet: true, cwd, env, minutes: 3 });
  return { line: ok ? (stdout.trim().split("\n").at(-1) ?? "") : `${stdout}${stderr}`.trim() };
}

/** A binary of a package for this platform, whose install script did not run. */
function binary({ tools }: Place, scope: string, file: string): string | undefined {
  const packages = join(tools, "node_modules", scope);
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

/** The runtime of Cloudflare's Workers: it compiles no WebAssembly that comes as bytes, so `js` trains. */
async function onWorkerd(place: Place) {
  const { folder, tools } = place;
  const program = binary(place, "@cloudflare", "bin/workerd");
  if (program === undefined) return { untried: "npm has no binary for this platform" };
  const flags = ["--bundle", "--format=esm", "--platform=neutral", "--main-fields=module,main", "--external:node:*"];
  const files = ["workerd.mjs", "--outfile=workerd-bundle.js"];
  const built = await lastLine(join(tools, "node_modules/.bin/esbuild"), [...flags, ...files], folder);
  if (built.line !== "") return built;
  writeFileSync(join(folder, "workerd.capnp"), WORKERD);
  return lastLine(program, ["test", "workerd.capnp"], folder);
}

const nodeRows: Row[] = ["20", "22", "24"].flatMap((version) =>
  [
    ["ESM", "node.mjs"],
    ["CommonJS", "node.cjs"],
    ["worker thread", "worker.mjs"],
  ].map(([form, file = ""]) => ({
    name: `Node ${version}, ${form}`,
    run: async ({ folder }) => {
      const program = await nodeOf(version);
      return program ? lastLine(program, [file], folder) : { untried: `npx cannot get node@${version}` };
    },
  })),
);

const row = (name: string, scope: string, file: string, ...args: string[]): Row => ({
  name,
  run: async (place) => {
    const program = binary(place, scope, file);
    const env = { DENO_DIR: join(place.tools, "deno-cache") };
    return program ? lastLine(program, args, place.folder, env) : { untried: "npm has no binary for this platform" };
  },
});

const DENO = ["run", "--no-prompt", "--no-remote", "--no-lock", "--node-modules-dir=manual"];

export const runtimeRows: readonly Row[] = [
  ...nodeRows,
  row("Bun, ESM", "@oven", "bin/bun", "run", "wasm.mjs"),
  row("Bun, every device", "@oven", "bin/bun", "run", "node.mjs"),
  row("Deno, all permissions", "@deno", "deno", ...DENO, "--allow-all", "node.mjs"),
  row("Deno, no permissions", "@deno", "deno", ...DENO, "node.mjs"),
  { name: "workerd (Cloudflare Workers)", run: onWorkerd },
];
