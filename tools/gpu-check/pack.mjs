/**
 * `node tools/gpu-check/pack.mjs [--archive] [folder]`: one folder with node, the packages, their tests and all that these need, for an
 * x86-64 Linux machine with an NVIDIA driver and no network. There `./gpu-check` does all, `./gpu-check contract` one part of it, and
 * both print one table. `--archive` makes the folder one file beside it, as small as xz can.
 */
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildCuda } from "../build-cuda.mjs";
import { optimizerPackages } from "../packages.mjs";
import { root, run } from "../run.mjs";

const PACKAGES = new Set([
  ...["core", "kernels-cuda", "nn", "testkit"].map((name) => join("packages", name)),
  // The optimizers: kernels are built for the rules of each.
  ...optimizerPackages().map(({ folder }) => relative(root, folder)),
]);
const PROGRAMS = ["vitest", "tsx", "fast-check"];

/** @param {string} folder */
const manifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/** Copies npm packages and all that they depend on, each where it lies. @param {string[]} names @param {string} destination */
function copyModules(names, destination) {
  const seen = new Set();
  const copy = (/** @type {string} */ name, /** @type {string} */ from) => {
    const places = [join(from, "node_modules", name), join(root, "node_modules", name)];
    const source = places.find((place) => existsSync(join(place, "package.json")));
    if (source === undefined || seen.has(source)) return; // absent: an optional one of another platform
    seen.add(source);
    const filter = (/** @type {string} */ path) => !path.slice(source.length).includes("/node_modules");
    cpSync(source, join(destination, source.slice(root.length)), { recursive: true, dereference: true, filter });
    const { dependencies = {}, optionalDependencies = {} } = manifest(source);
    for (const next of Object.keys({ ...dependencies, ...optionalDependencies })) copy(next, source);
  };
  for (const name of names) copy(name, root);
}

/** @param {string} destination */
export async function packGpuCheck(destination) {
  const { skipped } = await buildCuda();
  const kernels = join(root, "native/cuda/npm/linux-x64/kernels/rules.fatbin");
  if (!existsSync(kernels)) throw new Error(`[gpu-check] there are no kernels to check: ${skipped.join(", ")}.`);
  rmSync(destination, { recursive: true, force: true });
  mkdirSync(join(destination, "node_modules/@opt"), { recursive: true });
  copyFileSync(process.execPath, join(destination, "node"));
  const outside = new Set();
  for (const folder of PACKAGES) {
    const source = join(root, folder);
    const filter = (/** @type {string} */ path) => !path.includes("/node_modules");
    cpSync(source, join(destination, folder), { recursive: true, filter });
    symlinkSync(join("../..", folder), join(destination, "node_modules/@opt", basename(folder)));
    for (const each of Object.keys(manifest(source).dependencies ?? {}))
      if (!each.startsWith("@opt/")) outside.add(each);
  }
  copyModules([...PROGRAMS, ...outside], destination);
  cpSync(join(root, "native/cuda/npm"), join(destination, "native/cuda/npm"), { recursive: true });
  symlinkSync("../../native/cuda/npm/linux-x64", join(destination, "node_modules/@opt/kernels-cuda-linux-x64"));
  mkdirSync(join(destination, "tools"));
  for (const file of ["vitest.config.ts", "vitest.setup.ts", "vitest.reporter.mjs"])
    copyFileSync(join(root, "tools", file), join(destination, "tools", file));
  const own = dirname(fileURLToPath(import.meta.url));
  cpSync(own, join(destination, "tools/gpu-check"), { recursive: true });
  cpSync(join(root, "tools/bench/cuda"), join(destination, "tools/bench/cuda"), { recursive: true });
  writeFileSync(
    join(destination, "package.json"),
    `${JSON.stringify({ name: "gpu-check", private: true, type: "module" })}\n`,
  );
  copyFileSync(join(root, "tsconfig.base.json"), join(destination, "tsconfig.base.json"));
  const script =
    '#!/bin/sh\n# Everything that needs an NVIDIA GPU, in one table.\ncd "$(dirname "$0")" && exec ./node tools/gpu-check/check.mjs "$@"\n';
  writeFileSync(join(destination, "gpu-check"), script);
  for (const file of ["gpu-check", "node"]) chmodSync(join(destination, file), 0o755);
  return readdirSync(destination);
}

/** What lent machines take at most, with room to spare. */
const LARGEST_ARCHIVE = 50 * 2 ** 20;

/** One file of a packed folder. @param {string} folder @returns {string} */
export function archive(folder) {
  const file = `${folder}.tar.xz`;
  const order = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner"];
  const made = run("tar", [...order, "-C", dirname(folder), "-cJf", file, basename(folder)], {
    env: { XZ_OPT: "-9e" },
    quiet: true,
  });
  if (!made.ok) throw new Error(`[gpu-check] cannot make ${file}: ${made.stderr.trim() || "tar or xz is missing"}`);
  const { size } = statSync(file);
  if (size > LARGEST_ARCHIVE)
    throw new Error(`[gpu-check] ${file} must be under ${LARGEST_ARCHIVE} bytes, got ${size}.`);
  return `${file}, ${(size / 2 ** 20).toFixed(1)} MiB`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { archive: { type: "boolean" } } });
  const destination = resolve(positionals[0] ?? join(root, "runs/gpu-check"));
  await packGpuCheck(destination);
  const made = values.archive ? archive(destination) : destination;
  console.log(`gpu-check: packed into ${made}; there, or on a machine with a GPU: ./gpu-check`);
}
