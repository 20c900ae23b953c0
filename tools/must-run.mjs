/** What a run of all tests must have tried: a device whose every test is skipped is no device that works. */

const x64 = process.arch === "x64";
const onLinux = process.platform === "linux";

/**
 * A file counts when one of its tests has passed. `needs` names tools of set-up; `here` says on which machines the files can run at all.
 * @type {readonly { what: string, files: string[], needs: string[], here?: boolean }[]}
 */
export const mustRun = [
  { what: "the js device", files: ["packages/core/src/js/contract.test.ts", "e2e/goldens/rules.test.ts"], needs: [] },
  {
    what: "the wasm device",
    files: ["packages/kernels-wasm/src/contract.test.ts", "e2e/goldens/goldens.test.ts"],
    needs: [],
  },
  {
    what: "the native device",
    files: [
      `packages/kernels-cpu/src/contract.${x64 ? "sse2" : "neon"}.test.ts`,
      "packages/kernels-cpu/src/threads.test.ts",
    ],
    needs: ["cmake", "g++"],
  },
  {
    what: "CUDA kernels under the emulated driver",
    files: ["packages/kernels-cuda/src/contract.emulated.test.ts", "packages/kernels-cuda/src/emulated.test.ts"],
    needs: ["cmake", "g++"],
    here: x64 && onLinux,
  },
  {
    what: "MPI, with Open MPI and MPICH",
    files: ["packages/collectives-mpi/src/collectives.test.ts", "packages/collectives-mpi/src/faults.test.ts"],
    needs: ["cmake", "g++", "Open MPI", "MPICH"],
    here: onLinux,
  },
  {
    what: "the WebGPU device",
    files: ["packages/kernels-webgpu/src/contract.test.ts", "packages/kernels-webgpu/src/goldens.test.ts"],
    needs: ["the Vulkan loader", "a Vulkan driver"],
  },
  {
    what: "the browser's devices and page",
    files: ["e2e/browser-mnist/contract.test.ts", "e2e/browser-mnist/page.test.ts"],
    needs: ["Chromium"],
  },
  {
    what: "our optimizers in TF.js",
    files: ["packages/tfjs/src/tf-optimizer.test.ts", "packages/tfjs/src/state.test.ts"],
    needs: [],
  },
  {
    what: "our optimizers in jax-js",
    files: ["packages/jax-js/src/transformation.test.ts", "packages/jax-js/src/checkpoint.test.ts"],
    needs: [],
  },
  {
    what: "our optimizers in jax-js in a browser",
    files: ["packages/jax-js/src/browser.test.ts"],
    needs: ["Chromium"],
  },
  { what: "our optimizers in TF.js in a browser", files: ["packages/tfjs/src/browser.test.ts"], needs: ["Chromium"] },
  {
    what: "one training run with the same bits, in native code",
    files: ["e2e/same-run/src/native.test.ts"],
    needs: ["cmake", "g++"],
  },
  {
    what: "one training run with the same bits, in a page",
    files: ["e2e/same-run/src/browser.test.ts"],
    needs: ["Chromium"],
  },
  { what: "checkpoints", files: ["e2e/hybrid-parallel/src/hybrid-parallel.test.ts"], needs: [] },
  {
    what: "ranks as processes",
    files: ["e2e/hybrid-parallel/src/processes.test.ts", "e2e/mnist/src/ranks.test.ts"],
    needs: [],
  },
  { what: "the documentation's examples", files: ["e2e/docs/examples.test.ts"], needs: [] },
  { what: "the packages as their users get them", files: ["e2e/install/install.test.ts"], needs: [] },
];

/**
 * The same for other versions of Node: Node 20 has no fused multiply-add in WebAssembly.
 * @type {typeof mustRun}
 */
export const mustRunOnLater = [
  { what: "one training run with the same bits, in WebAssembly", files: ["e2e/same-run/src/wasm.test.ts"], needs: [] },
];

/**
 * What should have run and did not. What needs a tool that set-up may not install here is excused.
 * @param {Record<string, number>} ran how many tests of a file passed
 * @param {readonly string[]} excused the names of such tools
 * @param {typeof mustRun} must
 */
export function notRun(ran, excused, must = mustRun) {
  return must
    .filter(({ here = true, needs }) => here && !needs.some((tool) => excused.includes(tool)))
    .flatMap(({ what, files }) => {
      const missing = files.filter((file) => !ran[file]);
      return missing.length > 0 ? [`${what} (nothing passed in ${missing.join(", ")})`] : [];
    });
}
