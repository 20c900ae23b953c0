/** The test files of which `npm test` must pass at least one test each: a device whose every test is skipped is no device that works. */

const isLinux = process.platform === "linux";
const isX64 = process.arch === "x64";
/** Each processor of the family has it: OPT_CPU_HIDE hides the device only if it names this one, too. */
const leastSet = isX64 ? "sse2" : "neon";
const hasCpu = !process.env.OPT_CPU_HIDE?.split(",").includes(leastSet);

/**
 * `needs` names tools of set-up; `here` is false where the files cannot run at all.
 * @type {readonly { files: string[], needs: string[], here?: boolean }[]}
 */
export const mustRun = [
  {
    // The devices js and wasm, hosts, checkpoints, ranks as processes, documentation, packages as their users get them.
    files: [
      "packages/core/src/js/contract.test.ts",
      "packages/kernels-wasm/src/contract.test.ts",
      "packages/tfjs/src/tf-optimizer.test.ts",
      "packages/tfjs/src/state.test.ts",
      "packages/jax-js/src/transformation.test.ts",
      "packages/jax-js/src/checkpoint.test.ts",
      "e2e/goldens/rules.test.ts",
      "e2e/goldens/goldens.test.ts",
      "e2e/hybrid-parallel/src/hybrid-parallel.test.ts",
      "e2e/hybrid-parallel/src/processes.test.ts",
      "e2e/mnist/src/ranks.test.ts",
      "e2e/docs/examples.test.ts",
      "e2e/install/install.test.ts",
    ],
    needs: [],
  },
  {
    files: [
      `packages/kernels-cpu/src/contract.${leastSet}.test.ts`,
      "packages/kernels-cpu/src/contract.widest.test.ts",
      "packages/kernels-cpu/src/threads.test.ts",
      "e2e/same-run/src/native.test.ts",
      "e2e/leaderboard/src/repeat.test.ts",
    ],
    needs: ["cmake", "g++"],
    here: hasCpu,
  },
  {
    files: ["packages/kernels-cuda/src/contract.emulated.test.ts", "packages/kernels-cuda/src/emulated.test.ts"],
    needs: ["cmake", "g++"],
    here: isX64 && isLinux,
  },
  {
    files: ["packages/collectives-mpi/src/collectives.test.ts", "packages/collectives-mpi/src/faults.test.ts"],
    needs: ["cmake", "g++", "Open MPI", "MPICH"],
    here: isLinux,
  },
  {
    files: ["packages/kernels-webgpu/src/contract.test.ts", "packages/kernels-webgpu/src/goldens.test.ts"],
    needs: ["the Vulkan loader", "a Vulkan driver"],
  },
  {
    files: [
      "e2e/browser-mnist/contract.test.ts",
      "e2e/browser-mnist/page.test.ts",
      "e2e/same-run/src/browser.test.ts",
      "packages/jax-js/src/browser.test.ts",
      "packages/tfjs/src/browser.test.ts",
    ],
    needs: ["Chromium"],
  },
];

/** The same for other versions of Node: Node 20 has no fused multiply-add in WebAssembly. @type {typeof mustRun} */
export const mustRunOnLater = [
  { files: ["e2e/same-run/src/wasm.test.ts", "e2e/leaderboard/src/wasm.test.ts"], needs: [] },
];

/**
 * The files that should have run and did not. What needs a tool that set-up may not install here is excused.
 * @param {Record<string, number>} ran how many tests of a file passed
 * @param {readonly string[]} excused the names of such tools
 * @param {typeof mustRun} must
 */
export function notRun(ran, excused, must = mustRun) {
  return must
    .filter(({ here = true, needs }) => here && !needs.some((tool) => excused.includes(tool)))
    .flatMap(({ files }) => files.filter((file) => !ran[file]));
}
