/**
 * What of this machine a result depends on, as text: Node, the processor, the compilers, and the tools whose absence skips tests.
 * `shared` is a folder of samples that may be beside the checkout.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";

const TOOLS = [
  "chromium",
  "google-chrome",
  "cmake",
  "c++",
  "nvcc",
  "mpirun",
  "ompi_info",
  "mpichversion",
  "taskset",
  "qemu-aarch64",
];
const FILES = [
  "/dev/nvidiactl",
  "/usr/lib/x86_64-linux-gnu/libvulkan.so.1",
  "/usr/lib/aarch64-linux-gnu/libvulkan.so.1",
  "/usr/lib/chromium/vk_swiftshader_icd.json",
  "../shared",
];

/** A program's size tells a new version from an old one. @param {string} program */
function sizeOf(program) {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path));
  return found === undefined ? "missing" : statSync(found).size;
}

function processor() {
  if (!existsSync("/proc/cpuinfo")) return process.arch;
  return /^(?:flags|Features)\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
}

console.log(process.version, process.platform, process.arch, processor());
for (const program of TOOLS) console.log(program, sizeOf(program));
for (const file of FILES) console.log(file, existsSync(file));
if (process.env.OPT_TORCH_PYTHON) {
  const program = "import torch; print(torch.__version__)";
  console.log(execFileSync(process.env.OPT_TORCH_PYTHON, ["-c", program], { encoding: "utf8" }));
}
