/** Leaves what `npm test` needs to know of a run in the file that OPT_TEST_SUMMARY names. */
import { writeFileSync } from "node:fs";

export default class SummaryReporter {
  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly unknown[]} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    const summary = { passed: 0, failed: unhandledErrors.length, skipped: /** @type {string[]} */ ([]) };
    for (const module of modules) {
      // A module or suite that breaks outside its tests is a failure of its own.
      summary.failed += module.errors().length;
      for (const suite of module.children.allSuites()) summary.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === "passed") summary.passed++;
        else if (result.state === "failed") summary.failed++;
        else summary.skipped.push(`${test.fullName}${reasonOf(test.fullName, result, module)}`);
      }
    }
    if (process.env.OPT_TEST_SUMMARY) writeFileSync(process.env.OPT_TEST_SUMMARY, JSON.stringify(summary));
  }
}

/**
 * The reason given to skip(); none is added where the name of the suite says it.
 * @param {string} name
 * @param {import("vitest/node").TestResult} result
 * @param {import("vitest/node").TestModule} module
 */
function reasonOf(name, result, module) {
  if ("note" in result && result.note) return name.includes(result.note) ? "" : ` (${result.note})`;
  if (!module.ok()) return " (its file failed)";
  return /\(.*\)/.test(name) ? "" : " (no reason given)";
}
