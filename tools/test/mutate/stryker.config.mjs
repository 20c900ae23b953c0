/** Mutation testing of one area: small bugs are planted one at a time, and some test has to notice. https://stryker-mutator.io */
import { area } from "./areas.mjs";

/** @param {string} file beside this one */
const beside = (file) => new URL(file, import.meta.url).pathname;

const folder = `runs/mutation/${area.name}`;

// What core's tests do not need.
const others = area.package === "core" ? ["packages/checkpoint"] : [];

export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner", beside("words.mjs")],
  ignorers: ["words"],
  vitest: { configFile: "tools/test/mutate/vitest.config.ts", related: false },
  mutate: [...area.files.map((file) => `packages/${area.package}/src/${file}`), "!**/*.test.ts"],
  ignorePatterns: ["runs", "native", "e2e", "dist", "docs", "packages/kernels-*", "packages/nn", ...others],
  coverageAnalysis: "perTest",
  concurrency: 1,
  // Loops without end are found by counting; a busy machine may stand still for long, which must not pass for a bug found.
  timeoutMS: 60_000,
  // What is computed once at import would run every test; tables of ops have tests of their own.
  ignoreStatic: true,
  incremental: true,
  incrementalFile: `${folder}/incremental.json`,
  tempDirName: `${folder}/sandbox`,
  reporters: ["progress-append-only", "clear-text", "html"],
  thresholds: { break: 85 },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  htmlReporter: { fileName: `${folder}/index.html` },
};
