import { availableParallelism, tmpdir } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { transformedIn } from "./vitest.folder.ts";

// Every @opt package is resolved to its src, so that tests need no build.
const conditions = ["@opt/source", "module", "node", "development|production", "import"];

/** In a project, what takes longest first. */
const LONGEST = [
  /site|contract\.emulated|configurations\.test/,
  /e2e\/browser/,
  /contract|golden|install|crash|kill|memory|emulated/,
];

/**
 * One project after the other, as they stand below: workers of a project end where a file of another comes next, and to start and import
 * again takes seconds. The last project has the shortest files, so that no worker is left with a long one when the others are done.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const order = this.ctx.projects.map(({ name }) => name);
    const place = ({ project }: TestSpecification) => order.indexOf(project.name);
    const rank = ({ moduleId }: TestSpecification) => [...LONGEST, /./].findIndex((name) => name.test(moduleId));
    return (await super.sort(files)).sort((a, b) => place(a) - place(b) || rank(a) - rank(b));
  }
}

/** A file that registers a device of its own, replaces a module, looks at its first state or counts memory has a process to itself. */
const ALONE = "{e2e,packages}/**/*.alone.test.ts";

/** The long ones, for `npm run test:full`. */
const FULL = "**/*.full.test.ts";
const exclude = ["**/node_modules/**", "**/dist/**", FULL];

/** Tests that share a process for each worker: none leaves behind what another would see. */
const sharing = (name: string, include = `packages/${name}/{src,testing}/**/*.test.ts`, setupFiles: string[] = []) => ({
  extends: true as const,
  test: { name, isolate: false, setupFiles, include: [include], exclude: [...exclude, ALONE] },
});

/** Where files open devices, and the next one in the process must not see which. */
const JS_FIRST = ["tools/test/vitest.js-first.ts"];

/** Those of several packages. */
const PROGRAMS = "custom-optimizer|fine-tune|goldens|hybrid-parallel|leaderboard|mnist|tiny-gpt";
/** Of these folders, those that read or compute: the others change globals, register WebGPU or start much. */
const READING = {
  docs: "@(exports|from-pytorch|options|side-by-side|torch-pages)",
  programs: "@(host-algorithms|native-reads|ports|replaced-parameters|what-combines)",
};

/** Most of what tests call ends soon, and V8 spends a third of their time on optimizing it: it compiles at once, and optimizes late. Later V8 lacks the flags. */
const optimizedLate = process.versions.node.startsWith("20.")
  ? ["--interrupt-budget=1000000", "--always-sparkplug"]
  : [];

export default defineConfig({
  root: new URL("../..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    globalSetup: ["tools/test/vitest.folder.ts"],
    setupFiles: ["tools/test/vitest.setup.ts"],
    pool: "forks",
    execArgv: optimizedLate,
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
        test: {
          name: "system",
          include: [ALONE, "packages/collectives-mpi/src/**/*.test.ts", `e2e/!(${PROGRAMS})/**/*.test.ts`],
          exclude: [...exclude, `e2e/docs/${READING.docs}.test.ts`, `e2e/programs/**/${READING.programs}.test.ts`],
        },
      },
      // These register devices, which those of core must not see.
      sharing("devices", "packages/{checkpoint,jax-js,models,optim,tfjs,train}/{src,testing}/**/*.test.ts", JS_FIRST),
      ...["kernels-cpu", "kernels-wasm", "kernels-webgpu", "kernels-cuda", "parallel", "testkit"].map((name) =>
        sharing(name),
      ),
      sharing("tools", "tools/**/*.test.ts"),
      // These name the devices they use, whatever else is registered.
      sharing(
        "programs",
        `e2e/{@(${PROGRAMS})/**/*,docs/${READING.docs},programs/**/${READING.programs}}.test.ts`,
        JS_FIRST,
      ),
      sharing("unit", "packages/{core,nn,data,optimizers/*}/{src,testing}/**/*.test.ts"),
      { extends: true, test: { name: "full", include: [FULL], exclude: exclude.filter((each) => each !== FULL) } },
    ],
  },
});
