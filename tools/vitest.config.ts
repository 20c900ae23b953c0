import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

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

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      "packages/*/src/**/*.test.ts",
      "packages/optimizers/*/src/**/*.test.ts",
      "e2e/**/*.test.ts",
      "tools/**/*.test.ts",
    ],
    exclude: ["**/node_modules/**", "**/dist/**"],
    setupFiles: ["tools/vitest.setup.ts"],
    pool: "forks",
    // By itself vitest leaves one core free.
    maxWorkers: Math.min(availableParallelism(), 4),
    sequence: { sequencer: LongestFirst },
    // Against what hangs, not against what is slow: a busy or virtual machine may stand still for minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
