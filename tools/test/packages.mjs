/** The checks beside the tests: the packages as their users will get them. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { publicPackages, tarballOf } from "../workspace/packages.mjs";
import { root } from "../workspace/run.mjs";

/**
 * A check throws what is wrong.
 * @typedef {{ name: string, check: () => void | Promise<void> }} Check
 */

/** @param {string} tarballs the folder of the packages' tarballs @returns {Check[]} */
export const packageChecks = (tarballs) => [
  { name: "packages as npm gets them", check: () => checkTarballs(tarballs, problemsOfManifest) },
  { name: "types for the packages' users", check: () => checkTarballs(tarballs, problemsOfTypes) },
  ...bundles.map((bundle) => ({ name: `bundle of ${bundle.name}`, check: () => checkBundle(bundle) })),
  { name: "bundle of one optimizer", check: checkOptim },
];

/** @param {string} tarballs @param {(tarball: Buffer<ArrayBuffer>) => Promise<string[]>} problemsOf */
async function checkTarballs(tarballs, problemsOf) {
  for (const each of publicPackages()) {
    const problems = await problemsOf(readFileSync(tarballOf(tarballs, each)));
    if (problems.length > 0) throw new Error(`${each.name}:\n${problems.join("\n")}`);
  }
}

/** By publint, whose warnings are errors here. @param {Buffer<ArrayBuffer>} tarball */
async function problemsOfManifest({ buffer, byteOffset, length }) {
  const [{ publint }, { formatMessage }] = await Promise.all([import("publint"), import("publint/utils")]);
  const tarball = buffer.slice(byteOffset, byteOffset + length);
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true, level: "error" });
  return messages.map((message) => formatMessage(message, pkg) ?? message.code);
}

/** By "are the types wrong?", in every mode of module resolution. @param {Buffer<ArrayBuffer>} tarball */
async function problemsOfTypes(tarball) {
  const { checkPackage, createPackageFromTarballData } = await import("@arethetypeswrong/core");
  const result = await checkPackage(createPackageFromTarballData(tarball));
  if (result.types === false) return ["has no types"];
  // A CommonJS module can only import() these packages, and TypeScript says so.
  return result.problems.filter(({ kind }) => kind !== "CJSResolvesToESM").map((problem) => JSON.stringify(problem));
}

/** @typedef {{ name: string, program: string, external: string[], budget: number, absent: string[], gives?: string }} Bundle */

/** What a page that trains, clips, compiles and resumes takes of core, one optimizer and a backend. @param {string} kernels */
const training = (kernels) => `import "${kernels}";
  export { clipGradNorm, compile, init, noGrad, parameter, randn, tensor, tidy } from "@opt/core";
  export { NAdam } from "@opt/nadam";`;

/**
 * What pages load before they call anything: `budget` in bytes, minified and gzipped, without the words `absent`, which only what comes
 * later or never contains. `external` is what a browser is trusted never to import. `gives`: what the bundle exports, as text.
 * @type {Bundle[]}
 */
const bundles = [
  { name: "training on wasm", program: training("@opt/kernels-wasm"), external: ["node:*"], budget: 96256, absent: [] },
  { name: "training on webgpu", program: training("@opt/kernels-webgpu"), external: [], budget: 99328, absent: [] },
  {
    name: "checkpoints",
    program: 'export * from "@opt/checkpoint";',
    external: ["@opt/core", "h5wasm"],
    budget: 27136,
    // Readers of pickles, HDF5 and zip archives, and the writer of ledgers.
    absent: ["_rebuild_tensor_v2", "h5wasm", "central directory", "ledger.jsonl"],
  },
  {
    name: "tensors alone",
    program: 'import { tensor } from "@opt/core"; export default tensor([1, 2]).add(1).dataSync();',
    external: [],
    budget: 47104,
    // The optimizer loop, clipping and schedules.
    absent: ["addGroup", "initialCounters", "errorIfNonfinite", "clipGrad", "lastEpoch"],
    gives: "2,3",
  },
];

/** @param {Bundle} bundle */
async function checkBundle({ name, program, external, budget, absent, gives }) {
  const files = await pageFiles(program, external);
  const loaded = files.filter(({ isFirst }) => isFirst);
  const bytes = gzipped(loaded);
  console.log(`      ${name}: ${bytes} of ${budget} bytes at first, minified and gzipped, ${gzipped(files)} in all`);
  if (bytes > budget) throw new Error(`${bytes} bytes are over the budget of ${budget}.`);
  const early = absent.filter((word) => loaded.some(({ text }) => text.includes(word)));
  if (early.length > 0) throw new Error(`what a page loads at first must not contain ${early.join(", ")}.`);
  if (gives === undefined) return;
  const folder = mkdtempSync(join(tmpdir(), "opt-bundle-"));
  for (const { path, contents } of files) writeFileSync(join(folder, basename(path)), contents);
  const given = String((await import(pathToFileURL(join(folder, basename(files[0]?.path ?? ""))).href)).default);
  if (given !== gives) throw new Error(`the bundle gives ${given}, not ${gives}: it lacks something.`);
}

/** An optimizer costs the same bytes from `@opt/optim` as from its own package. */
async function checkOptim() {
  const bytesFrom = async (/** @type {string} */ name) =>
    gzipped(await pageFiles(`export { Lion } from "${name}";`, []));
  const [all, one] = [await bytesFrom("@opt/optim"), await bytesFrom("@opt/lion")];
  if (all > one) throw new Error(`${all} bytes from @opt/optim, ${one} from @opt/lion: mark definitions as pure.`);
}

/** @param {{ contents: Uint8Array }[]} files */
const gzipped = (files) => gzipSync(Buffer.concat(files.map(({ contents }) => contents)), { level: 9 }).length;

/** The files of a page, and which of them it loads before the program calls anything. @param {string} contents @param {string[]} external */
async function pageFiles(contents, external) {
  const { build } = await import("esbuild");
  const { metafile, outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    splitting: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    outdir: "bundle",
    external,
    logLevel: "silent",
  });
  const { outputs } = metafile;
  const first = new Set(Object.keys(outputs).filter((path) => outputs[path]?.entryPoint === "<stdin>"));
  // A set that grows while it is walked: what each file imports at once.
  for (const path of first)
    for (const { kind, path: other } of outputs[path]?.imports ?? [])
      if (kind === "import-statement" && other in outputs) first.add(other);
  return outputFiles.map(({ path, contents, text }) => ({
    ...{ path, contents, text },
    isFirst: [...first].some((name) => path.endsWith(name)),
  }));
}
