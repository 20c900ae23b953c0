/** Runs plain tests in a copy of the sources, without PyTorch. */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../../workspace/run.mjs";

/**
 * @typedef {{ name: string, status: string, assertionResults: { status: string, fullName: string }[] }} FileResult
 * of vitest's JSON
 */

/** Up to the first failure. @param {string} folder @param {readonly string[]} tests files @returns {import("./find.mjs").Outcome} */
export function runTests(folder, tests) {
  const summary = join(folder, "summary.json");
  rmSync(summary, { force: true });
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = ["run", "--config", "tools/test/vitest.config.ts", "--project", "!full", "--bail", "1"];
  const output = ["--passWithNoTests", "--reporter=json", `--outputFile=${summary}`];
  const env = { OPT_TORCH_PYTHON: "" };
  run(process.execPath, [vitest, ...args, ...output, ...tests], { quiet: true, cwd: folder, env, minutes: 60 });
  if (!existsSync(summary)) return { failures: [{ tests, title: "vitest ends badly" }], passed: [] };
  return outcomeOf(folder, JSON.parse(readFileSync(summary, "utf8")).testResults);
}

/** @param {string} folder @param {readonly FileResult[]} results @returns {import("./find.mjs").Outcome} */
export function outcomeOf(folder, results) {
  const files = results.map(({ name, status, assertionResults }) => {
    const titles = assertionResults.filter((one) => one.status === "failed").map(({ fullName }) => fullName);
    const shown = titles.length === 0 && status === "failed" ? ["does not load"] : titles;
    const file = name.slice(folder.length + 1);
    // What the first failure has stopped counts as skipped, and its file as passed.
    const isOver = status === "passed" && assertionResults.every((one) => one.status === "passed");
    return { file, failures: shown.map((title) => ({ tests: [file], title })), isOver };
  });
  return {
    failures: files.flatMap(({ failures }) => failures),
    passed: files.flatMap(({ file, isOver }) => (isOver ? [file] : [])),
  };
}
