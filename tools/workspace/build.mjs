/**
 * `npm run build`: every package as its users get it: ES modules, their declarations, and maps that name the sources beside them.
 * What is built stands in the manifests: beside the condition `@opt/source`, which names a source, stands the file that is built of it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { build as bundle } from "esbuild";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import { publicPackages } from "./packages.mjs";
import { root, start } from "./run.mjs";

/** @typedef {{ [condition: string]: string | Conditions }} Conditions */

/**
 * The sources of a manifest's `exports` or `imports`, by the names that they have in `dist`, without endings.
 * @param {Conditions} conditions
 * @returns {[name: string, source: string][]}
 */
function entriesOf(conditions) {
  const { "@opt/source": sources, ...built } = conditions;
  if (sources === undefined)
    return Object.values(conditions).flatMap((each) => (typeof each === "string" ? [] : entriesOf(each)));
  const byCondition = Object.entries(typeof sources === "string" ? { default: sources } : sources);
  return byCondition.map(([condition, source]) => [
    String(built[condition]).replace(/^\.\/dist\/|\.js$/g, ""),
    String(source),
  ]);
}

/** The declarations of all sources, in one pass. @param {string} destination */
async function emitDeclarations(destination) {
  const compiler = join(root, "node_modules/typescript-7/bin/tsc");
  const project = ["-p", "tools/tsconfig.build.json", "--rootDir", root, "--outDir", destination];
  const { ok, stdout } = await start(process.execPath, [compiler, ...project], { quiet: true });
  if (!ok) throw new Error(`[build] TypeScript cannot write the declarations.\n${stdout}`);
}

/** @param {import("./packages.mjs").Package} package_ @param {string} declarations */
async function buildPackage({ folder, exports = {}, imports = {} }, declarations) {
  const dist = join(folder, "dist");
  rmSync(dist, { recursive: true, force: true });
  const entries = entriesOf(exports).map(([name, source]) => [name, join(folder, source)]);
  const inside = entriesOf(imports).map(([name, source]) => [name, join(folder, source)]);
  await bundle({
    entryPoints: Object.fromEntries([...entries, ...inside]),
    outdir: dist,
    bundle: true,
    splitting: true,
    packages: "external",
    external: ["#*"], // chosen where the package is used
    format: "esm",
    target: "es2022",
    platform: "node",
    sourcemap: true,
    sourcesContent: false, // the sources lie beside it in the package
    logLevel: "warning",
  });
  const declared = entries.map(([name = "", source = ""]) => [
    name,
    join(declarations, relative(root, source).replace(/ts$/, "d.ts")),
  ]);
  const types = await rollup({
    input: Object.fromEntries(declared),
    external: (name) => !/^[./]/.test(name),
    plugins: [dts()],
  });
  await types.write({
    dir: dist,
    entryFileNames: "[name].d.ts",
    chunkFileNames: "[name]-[hash].d.ts",
    banner: '/// <reference lib="esnext.disposable" />', // Symbol.dispose, which es2022 lacks
  });
}

/** Builds all packages, in a few seconds. */
export async function build() {
  const declarations = mkdtempSync(join(tmpdir(), "opt-declarations-"));
  try {
    await emitDeclarations(declarations);
    for (const each of publicPackages()) if (each.exports) await buildPackage(each, declarations);
  } finally {
    rmSync(declarations, { recursive: true, force: true });
  }
}

if (process.argv[1] === import.meta.filename) await build();
