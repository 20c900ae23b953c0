/** Leaves what `npm test` needs to know of a run in the file that OPT_TEST_SUMMARY names. */
import { writeFileSync } from "node:fs";
import { relative, sep } from "node:path";
import { root } from "./run.mjs";

/**
 * `ran` has the number of tests that passed, by file.
 * @typedef {{ passed: number, failed: number, skipped: string[], ran: Record<string, number> }} Summary
 */

export default class SummaryReporter {
  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly unknown[]} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    /** @type {Summary} */
    const summary = { passed: 0, failed: unhandledErrors.length, skipped: [], ran: {} };
    for (const module of modules) {
      const passedBefore = summary.passed;
      // A module or suite that breaks outside its tests is a failure of its own.
      summary.failed += module.errors().length;
      for (const suite of module.children.allSuites()) summary.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === "passed") summary.passed++;
        else if (result.state === "failed") summary.failed++;
        else summary.skipped.push(`${test.fullName}${reasonOf(test.fullName, result, module)}`);
      }
      summary.ran[relative(root, module.moduleId).replaceAll(sep, "/")] = summary.passed - passedBefore;
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
