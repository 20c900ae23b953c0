/** Mutation testing of one area: small bugs are planted one at a time, and some test has to notice. https://stryker-mutator.io */
import { area } from "./areas.mjs";

/** @param {string} file beside this one */
const beside = (file) => new URL(file, import.meta.url).pathname;

const folder = `runs/mutation/${area.name}`;
const sample = process.env.OPT_MUTATION_SAMPLE ?? "1";

export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner", beside("words.mjs"), beside("sample-checker.mjs")],
  ignorers: ["words"],
  checkers: sample === "1" ? [] : ["sample"],
  vitest: { configFile: "tools/test/mutate/vitest.config.ts", related: false },
  mutate: [...area.files, "!**/*.test.ts"],
  ignorePatterns: ["runs", "packages/build", "native", "dist", "docs/.vitepress", "docs/api", "docs/public"],
  coverageAnalysis: "perTest",
  concurrency: 1,
  // Loops without end are found by counting; a busy machine may stand still for long, which must not pass for a bug found.
  timeoutMS: 60_000,
  dryRunTimeoutMinutes: 60,
  // What is computed once at import would run every test; tables of ops have tests of their own.
  ignoreStatic: true,
  incremental: true,
  // Each sample has its own: what is not in one may be in another.
  incrementalFile: `${folder}/incremental-${sample}.json`,
  tempDirName: `${folder}/sandbox`,
  reporters: ["progress-append-only", "json", "html"],
  jsonReporter: { fileName: `${folder}/report.json` },
  htmlReporter: { fileName: `${folder}/index.html` },
};
