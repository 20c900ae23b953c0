import { availableParallelism, tmpdir } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { transformedIn } from "./vitest.folder.ts";

// Every @opt package is resolved to its src, so that tests need no build.
const conditions = ["@opt/source", "module", "node", "development|production", "import"];

/** The files that take longest first, so that no worker is left with one of them when the others are done. */
const LONGEST = [/contract\.emulated/, /e2e\/browser/, /contract|golden|install|crash|kill|memory|emulated/];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => [...LONGEST, /./].findIndex((name) => name.test(moduleId));
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** The tests of a package share a process for each worker where they leave nothing behind that another file would see. */
const SHARED = "packages/{core,nn,data,optimizers/*}/src/**/*.test.ts";
/** These, too; but they register devices, which those must not see. */
const SHARED_WITH_DEVICES = "packages/{checkpoint,jax-js,tfjs,train}/src/**/*.test.ts";

/** Programs of several packages. They name the devices they use, whatever else is registered. */
const PROGRAMS = "custom-optimizer|fine-tune|goldens|mnist|tiny-gpt";

/** Each with its own devices. */
const SHARED_BY_PACKAGE = ["kernels-cpu", "kernels-wasm", "kernels-webgpu", "kernels-cuda", "parallel", "testkit"];

/** A file that registers a device of its own, replaces a module, looks at its first state or counts memory has a process to itself. */
const ALONE = "{e2e,packages}/**/*.alone.test.ts";

/** The long ones, for `npm run test:full`. */
const FULL = "**/*.full.test.ts";
const exclude = ["**/node_modules/**", "**/dist/**"];

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    globalSetup: ["tools/vitest.folder.ts"],
    setupFiles: ["tools/vitest.setup.ts"],
    pool: "forks",
    // Each project would transform the same modules for itself.
    experimental: { fsModuleCache: true, fsModuleCachePath: transformedIn(tmpdir()) },
    // By itself vitest leaves one core free.
    maxWorkers: Math.min(availableParallelism(), 4),
    sequence: { sequencer: LongestFirst },
    // Against what hangs, not against what is slow: a busy or virtual machine may stand still for minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    projects: [
      {
        extends: true,
        test: { name: "unit", isolate: false, include: [SHARED], exclude: [...exclude, FULL, ALONE] },
      },
      {
        extends: true,
        test: {
          name: "devices",
          isolate: false,
          include: [SHARED_WITH_DEVICES],
          exclude: [...exclude, FULL, ALONE],
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: [
            ALONE,
            "packages/{collectives-mpi,optim}/src/**/*.test.ts",
            `{e2e/!(${PROGRAMS}),tools}/**/*.test.ts`,
          ],
          exclude: [...exclude, FULL],
        },
      },
      {
        extends: true,
        test: {
          name: "programs",
          isolate: false,
          setupFiles: ["tools/vitest.js-first.ts"],
          include: [`e2e/@(${PROGRAMS})/**/*.test.ts`],
          exclude: [...exclude, FULL, ALONE],
        },
      },
      ...SHARED_BY_PACKAGE.map((name) => ({
        extends: true as const,
        test: {
          name,
          isolate: false,
          include: [`packages/${name}/src/**/*.test.ts`],
          exclude: [...exclude, FULL, ALONE],
        },
      })),
      { extends: true, test: { name: "full", include: [FULL], exclude } },
    ],
  },
});
