/** Leaves what Nx and `npm test` need to know of a run, file by file, in the file that OPT_TEST_SUMMARY names. */
import { writeFileSync } from "node:fs";
import { relative, sep } from "node:path";

/**
 * What happened outside of all files has no file.
 * @typedef {{ file: string, name: string, reason: string }} Skipped
 * @typedef {{ name: string, problem: string }} Failure
 * @typedef {{ file: string, passed: number, failures: Failure[], skipped: Skipped[] }} FileSummary
 */

export default class SummaryReporter {
  /**
   * @param {readonly import("vitest/node").TestModule[]} modules
   * @param {readonly import("vitest").SerializedError[]} unhandledErrors
   */
  onTestRunEnd(modules, unhandledErrors) {
    const files = modules.map(summaryOf);
    if (unhandledErrors.length > 0) {
      const failures = unhandledErrors.map((error) => ({
        name: "an error outside of the tests",
        problem: problemOf([error]),
      }));
      files.push({ file: "", passed: 0, failures, skipped: [] });
    }
    if (process.env.OPT_TEST_SUMMARY) writeFileSync(process.env.OPT_TEST_SUMMARY, JSON.stringify(files));
  }
}

/** @param {import("vitest/node").TestModule} module @returns {FileSummary} */
function summaryOf(module) {
  const file = relative(process.cwd(), module.moduleId).replaceAll(sep, "/");
  /** @type {FileSummary} */
  const summary = { file, passed: 0, failures: [], skipped: [] };
  /** @param {string} name @param {readonly import("vitest").SerializedError[]} errors */
  const fail = (name, errors) => summary.failures.push({ name, problem: problemOf(errors) });
  // A module or suite that breaks outside its tests is a failure of its own.
  for (const error of module.errors()) fail(file, [error]);
  for (const suite of module.children.allSuites())
    for (const error of suite.errors()) fail(`${file} > ${suite.fullName}`, [error]);
  for (const test of module.children.allTests()) {
    const result = test.result();
    const name = test.fullName;
    if (result.state === "passed") summary.passed++;
    else if (result.state === "failed") fail(`${file} > ${name}`, result.errors);
    else summary.skipped.push({ file, name, reason: reasonOf(name, result, module) });
  }
  return summary;
}

/** @param {readonly import("vitest").SerializedError[]} errors */
function problemOf(errors) {
  return errors
    .map(({ message, stack }) => `${message}\n${stack?.split("\n").find((line) => /^\s+at /.test(line)) ?? ""}`)
    .join("\n")
    .trim();
}

/**
 * The reason given to skip(), or in brackets in the name of a test or of its suite.
 * @param {string} name
 * @param {import("vitest/node").TestResult} result
 * @param {import("vitest/node").TestModule} module
 */
function reasonOf(name, result, module) {
  if ("note" in result && result.note) return result.note;
  if (!module.ok()) return "its file failed";
  return /\(skipped: ([^)]*)\)/.exec(name)?.[1] ?? /\(([^)]*)\)/.exec(name)?.[1] ?? "no reason given";
}
