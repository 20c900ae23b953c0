/**
 * The target `native` of native-cuda: builds @opt/kernels-cuda's binaries into native/cuda/npm/linux-x64, and the emulated device. The addon
 * needs a C++ compiler, the kernels nvcc, which takes a minute: they are built where a driver is, or where `OPT_CUDA_ARCHS` asks for them
 * (`all`: for every GPU of a release). `--generate`: the target `generate`, which writes the kernels of rules.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { root, run, start } from "../workspace/run.mjs";
import { compileAddon, filesIn, generateKernels, missingTools } from "./native.mjs";

const source = join(root, "native/cuda");
const build = join(source, "build");
const generated = join(build, "generated");
const destination = join(source, "npm/linux-x64");
const kernels = join(destination, "kernels");

const RELEASE_ARCHS = [75, 80, 86, 89, 90, 100, 120];
/** For the machine of a developer: one GPU's code, and PTX that the driver compiles for the others. */
const DEVELOPMENT_ARCHS = [90];

/** Writes elements.cuh with what it includes in its place. @param {string} folder */
function copyElements(folder) {
  const text = readFileSync(join(source, "kernels/elements.cuh"), "utf8");
  const functions = readFileSync(join(generated, "functions.cuh"), "utf8");
  writeFileSync(
    join(folder, "elements.cuh"),
    text.replace('#include "functions.cuh"\n', () => functions),
  );
}

const buildAddon = () => compileAddon(source, join(build, "addon"), join(destination, "opt_cuda.node"));

/** nvcc's options for the code that is asked for, and what it does not know. @param {boolean} release */
function codeOptions(release) {
  const listed = run("nvcc", ["--list-gpu-arch"], { quiet: true });
  if (!listed.ok) return { options: [], dropped: [] };
  const known = listed.stdout.split(/\s+/).map((name) => Number(name.replace("compute_", "")));
  const wanted = release ? RELEASE_ARCHS : DEVELOPMENT_ARCHS;
  const archs = wanted.filter((arch) => known.includes(arch));
  const dropped = wanted.filter((arch) => !known.includes(arch));
  const ptx = release ? Math.max(...archs) : RELEASE_ARCHS.find((arch) => known.includes(arch));
  const options = [
    ...archs.map((arch) => `-gencode=arch=compute_${arch},code=sm_${arch}`),
    `-gencode=arch=compute_${ptx},code=compute_${ptx}`,
  ];
  return { options, dropped };
}

const NVCC_OPTIONS = ["-std=c++17", "--fmad=false", `-I${join(source, "kernels")}`, `-I${generated}`];

async function buildKernels() {
  const version = run("nvcc", ["--version"], { quiet: true });
  if (!version.ok) return { skipped: "nvcc missing", dropped: [] };
  const [, cuda] = /release (\d+\.\d+)/.exec(version.stdout) ?? [];
  writeFileSync(join(kernels, "toolkit.json"), `${JSON.stringify({ cuda: Number(cuda) })}\n`);
  const { options: code, dropped } = codeOptions(process.env.OPT_CUDA_ARCHS === "all");
  for (const file of [...filesIn(join(source, "kernels"), ".cu"), ...filesIn(generated, ".cu")]) {
    const target = join(kernels, basename(file).replace(/\.cu$/, ".fatbin"));
    const options = [...NVCC_OPTIONS, ...code, "-Xptxas", "-v", "--threads", "2", "-fatbin", "-o", target, file];
    const compiled = await start("nvcc", options, { quiet: true, minutes: 60 });
    if (!compiled.ok)
      throw new Error(`[build-cuda] ${basename(file)} does not compile:\n${compiled.stdout}${compiled.stderr}`);
    // Registers and spills of every kernel, which tests look at.
    writeFileSync(join(build, `${basename(target)}.ptxas.log`), compiled.stdout + compiled.stderr);
  }
  return { dropped };
}

/** A driver library that runs the same kernels on the CPU, for tests where no GPU is. */
async function buildEmulator() {
  const folder = join(source, "emulator");
  const out = join(build, "emulator");
  const target = join(out, "libcuda.so");
  const compiler = process.env.CXX ?? "c++";
  const kernelSources = [...filesIn(join(source, "kernels"), ".cu"), ...filesIn(generated, ".cu")];
  mkdirSync(out, { recursive: true });
  const options = ["-std=c++20", "-mfma", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden", "-w"];
  const flags = [...options, `-I${folder}`, `-I${join(source, "kernels")}`, `-I${generated}`];
  const compile = async (/** @type {string[]} */ args) => {
    const compiled = await start(compiler, [...flags, ...args], { quiet: true });
    if (!compiled.ok) throw new Error(`[build-cuda] the emulator does not compile:\n${compiled.stderr}`);
    return compiled.stdout;
  };
  const objects = await Promise.all(
    kernelSources.map(async (file) => {
      const wrapper = join(out, `${basename(file)}.cc`);
      const object = `${wrapper}.o`;
      // Rules are hundreds of kernels, each of a few steps: no optimization gives back the time that it takes.
      const level = file.endsWith("rules.cu") ? "-Og" : "-O2";
      const expanded = await compile(["-E", "-P", "-x", "c++", "-include", "cuda.h", file]);
      const names = [...expanded.matchAll(/extern "C"\s+void\s+(\w+)\s*\(/g)].map(([, name]) => name);
      const rows = names.map((name) => `static Registration of_${name}("${name}", Packed<${name}>::call);`);
      writeFileSync(wrapper, [`#include "cuda.h"`, `#include "${file}"`, ...rows, ""].join("\n"));
      await compile([level, "-c", "-o", object, wrapper]);
      writeFileSync(join(out, basename(file).replace(/\.cu$/, ".fatbin")), "the kernels are in libcuda.so");
      return object;
    }),
  );
  await compile(["-O2", "-shared", "-o", target, ...filesIn(folder, ".cc"), ...objects, "-ldl"]);
  copyElements(out);
}

/** @returns {Promise<string[]>} what was left out and why */
async function buildCuda() {
  if (process.platform !== "linux" || process.arch !== "x64") return ["CUDA kernels (x86-64 Linux only)"];
  mkdirSync(kernels, { recursive: true });
  const missing = missingTools();
  if (missing !== "") return [`CUDA addon (${missing} missing)`];
  await buildAddon();
  // NVRTC compiles this text in front of kernels that no build knew.
  copyElements(kernels);
  await buildEmulator();
  if (process.env.OPT_CUDA_ARCHS === undefined && !existsSync("/dev/nvidiactl")) return [];
  const { skipped, dropped } = await buildKernels();
  return [
    ...(skipped ? [`CUDA kernels (${skipped})`] : []),
    ...dropped.map((arch) => `CUDA code for sm_${arch} (this nvcc does not know it)`),
  ];
}

if (process.argv.includes("--generate")) generateKernels("kernels-cuda", generated);
else for (const what of await buildCuda()) console.log(`build-cuda: skipped ${what}`);
