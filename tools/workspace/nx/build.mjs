/**
 * Packages as their users get them: ES modules, their declarations, and maps that name the sources beside them. The manifests say what is
 * built. Beside the condition `@opt/source`, which names a source, is the file that is built of it.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import { build as bundle } from "tsup";
import { start } from "../run.mjs";
import { batchExecutor, compilerProblems, resultsByFile } from "./batch.mjs";
import { testDataLeftOut } from "./test-data.mjs";

/** @typedef {import("../packages.mjs").Conditions} Conditions */

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

/**
 * The declarations of packages' sources and of all that these import, in one pass.
 * @param {readonly string[]} folders
 * @param {string} root
 * @param {string} destination
 * @returns {Promise<string>} what TypeScript cannot read; it writes all others
 */
async function emitDeclarations(folders, root, destination) {
  const config = {
    extends: join(root, "tsconfig.base.json"),
    // Types are checked by `typecheck`.
    compilerOptions: {
      noCheck: true,
      noEmit: false,
      emitDeclarationOnly: true,
      sourceMap: false,
      rootDir: root,
      outDir: destination,
    },
    include: folders.map((folder) => join(root, folder, "src")),
    exclude: ["**/*.test.ts", "**/*.soak.ts"].map((each) => join(root, each)),
  };
  const project = join(destination, "tsconfig.json");
  writeFileSync(project, JSON.stringify(config));
  const compiler = join(root, "node_modules/typescript-7/bin/tsc");
  const { ok, stdout } = await start(process.execPath, [compiler, "-p", project], { quiet: true });
  if (!ok && compilerProblems(stdout, root).length === 0)
    throw new Error(`TypeScript cannot write the declarations.\n${stdout}`);
  return stdout;
}

/** A class that names itself in its body is `var X = class _X` by esbuild, and messages would say `_X`. */
const classNames = {
  name: "class-names",
  /** @param {string} code */
  renderChunk(code) {
    const own = new Set(Array.from(code.matchAll(/^var (\w+) = class _\1\b/gm), ([, name]) => name));
    return { code: code.replace(/\b_(\w+)\b/g, (all, name) => (own.has(name) ? name : all)) };
  },
};

/** The one configuration of tsup. @param {string} folder @param {[name: string, source: string][]} entries @returns {import("tsup").Options} */
const configuration = (folder, entries) => ({
  config: false,
  entry: Object.fromEntries(entries.map(([name, source]) => [name, join(folder, source)])),
  outDir: join(folder, "dist"),
  clean: true,
  format: "esm",
  target: "es2022",
  platform: "node",
  splitting: true,
  sourcemap: true,
  skipNodeModulesBundle: true, // `#` names, too: these are chosen where the package is used
  removeNodeProtocol: false,
  silent: true,
  esbuildPlugins: [testDataLeftOut],
  plugins: [classNames],
  esbuildOptions(options) {
    options.sourcesContent = false; // the sources are beside it in the package
  },
});

/** @param {string} folder @param {string} root @param {string} declarations */
async function buildPackage(folder, root, declarations) {
  const { exports = {}, imports = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const entries = entriesOf(exports);
  process.chdir(folder); // tsup reads the manifest and tsconfig.json of where it is
  await bundle(configuration(folder, [...entries, ...entriesOf(imports)]));
  const types = await rollup({
    input: Object.fromEntries(
      entries.map(([name, source]) => [
        name,
        join(declarations, relative(root, join(folder, source)).replace(/ts$/, "d.ts")),
      ]),
    ),
    external: (name) => !/^[./]/.test(name),
    plugins: [dts()],
  });
  await types.write({
    dir: join(folder, "dist"),
    entryFileNames: "[name].d.ts",
    chunkFileNames: "[name]-[hash].d.ts",
    banner: '/// <reference lib="esnext.disposable" />', // Symbol.dispose, which es2022 lacks
  });
}

/** @param {readonly import("./batch.mjs").Asked[]} asked @param {string} root */
async function build(asked, root) {
  mkdirSync(join(root, "runs"), { recursive: true });
  const declarations = mkdtempSync(join(root, "runs/declarations-"));
  /** @type {Map<string, import("./batch.mjs").Result>} */
  let results = new Map();
  try {
    const folders = asked.map(({ folder }) => folder);
    const problems = compilerProblems(await emitDeclarations(folders, root, declarations), root);
    results = resultsByFile(asked, root, problems);
    for (const { name, folder } of asked.filter((each) => results.get(each.name)?.success)) {
      const problem = await buildPackage(join(root, folder), root, declarations).then(() => undefined, String);
      results.set(name, { success: problem === undefined, terminalOutput: problem ?? "" });
    }
  } catch (error) {
    for (const { name } of asked) results.set(name, { success: false, terminalOutput: String(error) });
  } finally {
    process.chdir(root);
    rmSync(declarations, { recursive: true, force: true });
  }
  return results;
}

const { batch, one } = batchExecutor(build);

export { batch };
export default one;
