/** Programs that tests start as processes of their own. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));

/** Our sources go into the bundle, and find files from where they lie. Other packages stay where npm put them. */
const ours: Plugin = {
  name: "ours",
  setup({ onResolve, onLoad, resolve }) {
    onResolve({ filter: /^[^./]/ }, async ({ path, kind, resolveDir, pluginData, importer }) => {
      if (path.startsWith("file:")) return { path: fileURLToPath(path) };
      if (kind === "entry-point" || pluginData === "resolved" || path.startsWith("node:")) return undefined;
      const found = await resolve(path, { kind, resolveDir, importer, pluginData: "resolved" });
      if (found.errors.length > 0 || found.external) return { path, external: true };
      if (!found.path.includes("node_modules")) return { path: found.path };
      return { path: pathToFileURL(found.path).href, external: true };
    });
    onLoad({ filter: /\.[jt]s$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
      loader: "ts",
    }));
  },
};

/** They end soon, and V8 spends a fifth of their time on functions that are not called again. Later V8 lacks the flag. */
const OPTIMIZE_LATER = `import { setFlagsFromString } from "node:v8";
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--interrupt-budget=1000000");`;

/**
 * Bundles programs with all of ours that they import: `node` then starts one in 0.3 s, where it takes 1.5 s to load every source file.
 *
 * @param programs paths of files, with different names
 * @returns the paths of JavaScript files, in the same order. They share their modules, and are deleted when the run of tests ends.
 *
 * @example const [launcher, program] = await bundled(optRun, join(import.meta.dirname, "ranks.ts"));
 */
export async function bundled<const Programs extends readonly string[]>(
  ...programs: Programs
): Promise<{ [I in keyof Programs]: string }> {
  const outdir = mkdtempSync(join(tmpdir(), "opt-programs-"));
  const later = join(outdir, "optimize-later.mjs");
  writeFileSync(later, OPTIMIZE_LATER);
  await build({
    entryPoints: [...programs],
    inject: [later],
    outdir,
    entryNames: "[name]",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    conditions: ["@opt/source"],
    plugins: [ours],
    absWorkingDir: ROOT,
    logLevel: "error",
  });
  return programs.map((path) => join(outdir, basename(path).replace(/\.[jt]s$/, ".mjs"))) as never;
}

/** `opt-run`, which starts ranks. */
export const optRun = join(ROOT, "packages/parallel/src/local/cli.ts");
