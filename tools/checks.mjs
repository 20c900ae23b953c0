/** The checks beside the tests: source, types, and the packages as their users will get them. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { checkManifests } from "./manifests.mjs";
import { publicPackages, tarballOf } from "./packages.mjs";
import { root, run, start } from "./run.mjs";
import { checkWords } from "./words.mjs";

/**
 * A check throws what is wrong, or returns the reason why it cannot run here.
 * @typedef {{ name: string, check: () => void | string | Promise<void | string> }} Check
 */

/** @type {Check[]} */
export const sourceChecks = [
  { name: "format and lint", check: () => mustSucceed("biome", ["check", "--error-on-warnings"]) },
  { name: "packages depend one way", check: checkDependencies },
  { name: "types", check: () => mustSucceed("tsc", ["-p", "tools/tsconfig.json"]) },
  { name: "manifests", check: checkManifests },
  { name: "words of the documentation", check: checkWords },
  { name: "changesets", check: checkChangesets },
];

/**
 * @param {string} tarballs the folder of the packages' tarballs
 * @returns {Check[]}
 */
export function packageChecks(tarballs) {
  const checks = publicPackages().flatMap((each) => {
    const tarball = tarballOf(tarballs, each);
    return [
      { name: `publint ${each.name}`, check: () => checkManifest(tarball) },
      {
        name: `types of ${each.name} for its users`,
        check: () => mustSucceed("attw", [tarball, "--ignore-rules", "cjs-resolves-to-esm"]),
      },
    ];
  });
  return [
    ...checks,
    { name: "bundle size", check: checkBundleSize },
    { name: "bundle of checkpoints", check: checkCheckpointBundle },
    { name: "tree shaking", check: checkTreeShaking },
    { name: "tree shaking of @opt/optim", check: checkOptim },
  ];
}

/**
 * @param {string} command
 * @param {string[]} args
 */
async function mustSucceed(command, args) {
  const { ok, stdout, stderr } = await start(command, args, { quiet: true });
  if (!ok) throw new Error(stdout + stderr);
}

/** Biome sees circles of imports within a package; between packages they would be circles of dependencies. */
function checkDependencies() {
  const packages = new Map(publicPackages().map((each) => [each.name, each]));
  /** @param {string[]} path */
  const visit = (path) => {
    const [first] = path;
    const { dependencies, peerDependencies, optionalDependencies } = packages.get(path.at(-1) ?? "") ?? {};
    for (const name of Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })) {
      if (name === first) throw new Error(`the packages' dependencies make a circle: ${[...path, name].join(" -> ")}`);
      if (packages.has(name) && !path.includes(name)) visit([...path, name]);
    }
  };
  for (const name of packages.keys()) visit([name]);
}

/** Every package that differs from the main branch has a changeset, and all changesets make a release plan. */
async function checkChangesets() {
  const base = "origin/main";
  if (!run("git", ["rev-parse", "--verify", base], { quiet: true }).ok) return `there is no ${base} to compare with`;
  await mustSucceed("changeset", ["status", "--since", base]);
}

/** @param {string} tarball */
async function checkManifest(tarball) {
  const { publint } = await import("publint");
  const { formatMessage } = await import("publint/utils");
  const bytes = readFileSync(tarball);
  const { messages, pkg } = await publint({
    pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
    strict: true,
  });
  if (messages.length > 0) throw new Error(messages.map((message) => formatMessage(message, pkg)).join("\n"));
}

const bundleBudget = 78 * 1024;

/** What a page that trains, clips, compiles and resumes takes of core, one optimizer and a backend stays under the budget when minified and gzipped. */
async function checkBundleSize() {
  for (const kernels of ["@opt/kernels-wasm", "@opt/kernels-webgpu"]) {
    const program = `import "${kernels}";
      export { clipGradNorm, compile, init, noGrad, parameter, randn, tensor, tidy } from "@opt/core";
      export { NAdam } from "@opt/nadam";`;
    await checkBundle(kernels, program, kernels === "@opt/kernels-webgpu" ? [] : ["node:*"]);
  }
}

const checkpointBudget = 26.5 * 1024;

/** Words that only readers of pickles, HDF5 and zip archives contain, and the writer of ledgers. */
const loadedLater = ["_rebuild_tensor_v2", "h5wasm", "central directory", "ledger.jsonl"];

/** What a page loads of checkpoints at first, with every export kept: the rest comes when it is called. Nothing of Node's is in any of it. */
async function checkCheckpointBundle() {
  const files = await pageFiles('export * from "@opt/checkpoint";', ["@opt/core", "h5wasm"]);
  const loaded = files.filter(({ isFirst }) => isFirst);
  const bytes = gzipped(loaded);
  console.log(
    `      @opt/checkpoint: ${bytes} of ${checkpointBudget} bytes at first, minified and gzipped, ${gzipped(files)} in all`,
  );
  if (bytes > checkpointBudget) throw new Error(`${bytes} bytes are over the budget of ${checkpointBudget}.`);
  const early = loadedLater.filter((word) => loaded.some(({ text }) => text.includes(word)));
  if (early.length > 0) throw new Error(`what a page loads at first must not contain ${early.join(", ")}.`);
}

/** Words that only the optimizer loop, clipping and schedules write. */
const dropped = ["addGroup", "initialCounters", "errorIfNonfinite", "clipGrad", "lastEpoch"];

/** Who imports tensors alone gets their methods, and neither optimizers nor clipping nor schedules. */
async function checkTreeShaking() {
  const program = 'import { tensor } from "@opt/core"; export default tensor([1, 2]).add(1).dataSync();';
  const files = await pageFiles(program, []);
  const { default: sum } = await import(entryOf(files));
  if (String(sum) !== "2,3") throw new Error(`a bundle of tensors computes ${sum}: it lacks the methods.`);
  const text = files.map((file) => file.text).join("");
  const kept = dropped.filter((word) => text.includes(word));
  if (kept.length > 0) throw new Error(`a bundle of tensors alone must not contain ${kept.join(", ")}.`);
  const loaded = files.filter(({ isFirst }) => isFirst);
  console.log(`      tensors alone: ${gzipped(loaded)} bytes at first, minified and gzipped, ${gzipped(files)} in all`);
}

/** The address of a bundle's first file, written where the files find each other. @param {{ path: string, contents: Uint8Array }[]} files */
function entryOf(files) {
  const folder = mkdtempSync(join(tmpdir(), "opt-bundle-"));
  for (const { path, contents } of files) writeFileSync(join(folder, basename(path)), contents);
  return pathToFileURL(join(folder, basename(files[0]?.path ?? ""))).href;
}

/** An optimizer costs the same bytes from `@opt/optim` as from its own package. */
async function checkOptim() {
  const bytesFrom = async (/** @type {string} */ name) =>
    gzipped(await pageFiles(`export { Lion } from "${name}";`, []));
  const [all, one] = [await bytesFrom("@opt/optim"), await bytesFrom("@opt/lion")];
  console.log(`      Lion: ${all} bytes from @opt/optim, ${one} from @opt/lion`);
  if (all > one) throw new Error("a bundle of one optimizer keeps others: mark what they define as pure.");
}

/**
 * @param {string} kernels
 * @param {string} program
 * @param {string[]} external what a browser is trusted never to import
 */
async function checkBundle(kernels, program, external) {
  const whole = ["@opt/core", "@opt/nadam", kernels].map((name) => `export * from "${name}";`).join("\n");
  const loaded = (await pageFiles(program, external)).filter(({ isFirst }) => isFirst);
  const [bytes, everything] = [gzipped(loaded), gzipped(await pageFiles(whole, external))];
  console.log(
    `      core + nadam + ${kernels}: ${bytes} of ${bundleBudget} bytes in a program, ${everything} with every export`,
  );
  if (bytes > bundleBudget) throw new Error(`${bytes} bytes are over the budget of ${bundleBudget}.`);
}

/** @param {{ contents: Uint8Array }[]} files */
function gzipped(files) {
  return gzipSync(Buffer.concat(files.map(({ contents }) => contents)), { level: 9 }).length;
}

/**
 * The files of a page, and which of them it loads before the program calls anything.
 * @param {string} contents
 * @param {string[]} external
 */
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
  /** @type {Set<string>} */
  const first = new Set();
  /** @param {string} path */
  const visit = (path) => {
    if (first.has(path)) return;
    first.add(path);
    for (const { kind, path: other } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement" && other in outputs) visit(other);
    }
  };
  visit(Object.keys(outputs).find((path) => outputs[path]?.entryPoint === "<stdin>") ?? "");
  return outputFiles.map((file) => ({
    path: file.path,
    contents: file.contents,
    text: file.text,
    isFirst: [...first].some((name) => file.path.endsWith(name)),
  }));
}
