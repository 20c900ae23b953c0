/** Tests: one vitest run for all projects that are asked for. Each passes or fails by its own files. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { start } from "../run.mjs";
import { batchExecutor, ownerOf } from "./batch.mjs";

/** @typedef {import("../../test/vitest.reporter.mjs").FileSummary} FileSummary */

/** Whether an argument of vitest names test files: it is no option, nor the value of one. @type {(each: string, i: number, all: readonly string[]) => boolean} */
const isFile = (each, i, all) => !each.startsWith("-") && (/\.ts$|\//.test(each) || !all[i - 1]?.startsWith("-"));

/** @param {readonly import("./batch.mjs").Asked[]} asked @param {string} root */
async function run(asked, root) {
  const folder = join(root, "runs/test");
  const summary = join(folder, `run-${process.pid}.json`);
  mkdirSync(folder, { recursive: true });
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/test/vitest.config.ts"];
  const projects = process.env.OPT_TEST_ALL ? [] : ["--project", "!full"];
  const reporters = ["--reporter=default", "--reporter=./tools/test/vitest.reporter.mjs"];
  // Files that are named behind `--` take the place of the project's folder.
  const named = asked[0]?.asked ?? []; // the same for all
  const filters = named.some(isFile) ? [] : asked.map((each) => `${each.folder}/`);
  const { ok } = await start(process.execPath, [...vitest, ...projects, ...reporters, ...filters, ...named], {
    cwd: root,
    env: { OPT_TEST_SUMMARY: summary },
    minutes: 60,
  });
  /** @type {FileSummary[]} */
  const files = existsSync(summary) ? JSON.parse(readFileSync(summary, "utf8")) : [];
  rmSync(summary, { force: true });
  const own = asked.map(({ name }) => ({
    name,
    files: files.filter((each) => each.file === "" || ownerOf(asked, root, join(root, each.file)) === name),
  }));
  const isLost = !ok && own.every((each) => each.files.every(({ failures }) => failures.length === 0));
  return new Map(own.map((each) => [each.name, resultOf(each.name, each.files, isLost, folder)]));
}

/** @param {string} name @param {readonly FileSummary[]} files @param {boolean} isLost @param {string} folder */
function resultOf(name, files, isLost, folder) {
  const failures = files.flatMap((each) => each.failures);
  const passed = files.reduce((sum, each) => sum + each.passed, 0);
  const skipped = files.reduce((sum, each) => sum + each.skipped.length, 0);
  const path = join(folder, `${name}.json`);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, JSON.stringify(files));
  const problems = failures.map((each) => `${each.name}\n${each.problem}\n`);
  // A run that ends badly without a failed test of theirs (a crash, no test found) fails all of its projects.
  if (isLost) problems.push("vitest ended badly: see what it printed.\n");
  const counts = `${passed} passed, ${problems.length} failed, ${skipped} skipped\n`;
  return { success: problems.length === 0 && passed + skipped > 0, terminalOutput: `${problems.join("")}${counts}` };
}

const { batch, one } = batchExecutor(run);

export { batch };
export default one;
