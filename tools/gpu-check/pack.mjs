/**
 * `node tools/gpu-check/pack.mjs [--archive] [folder]`: one folder with node, the packages, their tests and all that these need, for an
 * x86-64 Linux machine with an NVIDIA driver and no network. There `./gpu-check` does all, `./gpu-check contract` one part of it, and
 * both print one table. `--archive` makes the folder one file beside it, as small as xz can.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { nx } from "../workspace/nx/run.mjs";
import { optimizerPackages } from "../workspace/packages.mjs";
import { root, run } from "../workspace/run.mjs";

/** With the optimizers: kernels are built for the rules of each. */
const PACKAGES = [
  ...["core", "kernels-cuda", "nn", "testkit"].map((name) => join("packages", name)),
  ...optimizerPackages().map(({ folder }) => relative(root, folder)),
];
const OTHERS = ["tools", "native/cuda/npm", "tsconfig.base.json"];
const PROGRAMS = ["vitest", "tsx", "fast-check"];
const SCRIPT = `#!/bin/sh
# Everything that needs an NVIDIA GPU, in one table.
cd "$(dirname "$0")" && exec ./node tools/gpu-check/check.mjs "$@"
`;

/** What a package asks for. @param {string} folder */
function dependenciesOf(folder) {
  const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
    readFileSync(join(folder, "package.json"), "utf8"),
  );
  return Object.keys({ ...dependencies, ...optionalDependencies });
}

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
    for (const next of dependenciesOf(source)) copy(next, source);
  };
  for (const name of names) copy(name, root);
}

/** @param {string} destination */
async function packGpuCheck(destination) {
  await nx(["native", "native-cuda"], { OPT_CUDA_ARCHS: "development" });
  const kernels = join(root, "native/cuda/npm/linux-x64/kernels/rules.fatbin");
  if (!existsSync(kernels)) throw new Error(`[gpu-check] there are no kernels to check: nvcc is missing.`);
  rmSync(destination, { recursive: true, force: true });
  const own = join(destination, "node_modules/@opt");
  mkdirSync(own, { recursive: true });
  cpSync(process.execPath, join(destination, "node"));
  const filter = (/** @type {string} */ path) => !path.includes("/node_modules");
  for (const path of [...PACKAGES, ...OTHERS])
    cpSync(join(root, path), join(destination, path), { recursive: true, filter });
  for (const folder of PACKAGES) symlinkSync(join("../..", folder), join(own, basename(folder)));
  symlinkSync("../../native/cuda/npm/linux-x64", join(own, "kernels-cuda-linux-x64"));
  const outside = PACKAGES.flatMap((folder) => dependenciesOf(join(root, folder)));
  copyModules([...PROGRAMS, ...outside.filter((name) => !name.startsWith("@opt/"))], destination);
  writeFileSync(join(destination, "package.json"), '{ "name": "gpu-check", "private": true, "type": "module" }\n');
  writeFileSync(join(destination, "gpu-check"), SCRIPT, { mode: 0o755 });
}

/** One file of a packed folder. @param {string} folder */
function archive(folder) {
  const file = `${folder}.tar.xz`;
  const args = ["-C", dirname(folder), "-cJf", file, basename(folder)];
  const made = run("tar", args, { env: { XZ_OPT: "-9e" }, quiet: true });
  if (!made.ok) throw new Error(`[gpu-check] cannot make ${file}: ${made.stderr.trim() || "tar or xz is missing"}`);
  return `${file}, ${(statSync(file).size / 2 ** 20).toFixed(1)} MiB`;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { archive: { type: "boolean" } } });
const destination = resolve(positionals[0] ?? join(root, "runs/gpu-check"));
await packGpuCheck(destination);
console.log(`gpu-check: packed into ${values.archive ? archive(destination) : destination}; there: ./gpu-check`);
