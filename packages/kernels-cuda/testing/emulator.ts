/** The cuda device on the emulated driver: the addon, the host code and the kernels themselves, on the CPU. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { OptError } from "@opt/core";
import { binaryFolder, loadAddon, openDriver } from "../src/addon";
import { CudaBackend } from "../src/backend";
import type { Compiler } from "../src/compiler";

export const library = fileURLToPath(new URL("../../../native/cuda/build/emulator/libcuda.so", import.meta.url));
const headers = fileURLToPath(new URL("../../../native/cuda/emulator", import.meta.url));

/** By source, for all devices of a process. */
const images = new Map<string, Uint8Array>();

/** In NVRTC's place: the machine's C++ compiler. The image is the path of a library. */
function hostCompiler(): Compiler {
  return {
    compile(source) {
      const known = images.get(source);
      if (known !== undefined) return known;
      const file = join(mkdtempSync(join(tmpdir(), "opt-cuda-")), "kernel");
      const [, name] = /__launch_bounds__\(THREADS, 1\) (\w+)\(/.exec(source)!;
      const registration = `static Registration own("${name}", Packed<${name}>::call);`;
      writeFileSync(`${file}.cc`, ['#include "cuda.h"', source, registration, ""].join("\n"));
      const options = ["-std=c++20", "-O1", "-mfma", "-ffp-contract=off", "-fPIC", "-shared", "-w", `-I${headers}`];
      const compiled = spawnSync("c++", [...options, "-o", `${file}.so`, `${file}.cc`, library], {
        encoding: "utf8",
        timeout: 240_000,
      });
      if (compiled.status !== 0) throw new Error(compiled.stderr);
      const image = Buffer.from(`${file}.so\0`);
      images.set(source, image);
      return image;
    },
  };
}

/** `eager`: transfers run at once, however late launches do. @throws OptError DEVICE_UNAVAILABLE if the emulator was not built */
export function openEmulated(index = 0, { compiler = true, eager = false } = {}): CudaBackend {
  if (!existsSync(library)) {
    throw new OptError("DEVICE_UNAVAILABLE", "cuda", "the emulator was not built.", "Run npx nx native native-cuda.");
  }
  if (eager) process.env.OPT_EMULATED_EAGER = "1";
  else delete process.env.OPT_EMULATED_EAGER;
  return new CudaBackend(index, {
    driver: openDriver(loadAddon(binaryFolder()), library),
    kernels: dirname(library),
    findCompiler: () => (compiler ? hostCompiler() : undefined),
  });
}
