/**
 * `npm run plant -- [names]`: plants known faults one at a time in a copy of the sources, runs plain tests there, and says which test finds each.
 * The exit code is 1 if a fault stays unfound. The checkout itself is never changed.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root, run } from "../../workspace/run.mjs";
import { faults } from "./faults.mjs";

const named = process.argv.slice(2);
const unknown = named.filter((name) => faults.every((fault) => fault.name !== name));
if (unknown.length > 0) {
  console.error(`no fault ${unknown.join(", ")}; there are ${faults.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

/** @param {string[]} args */
const listed = (...args) =>
  run("git", ["ls-files", ...args], { quiet: true })
    .stdout.split("\n")
    .filter(Boolean);

/** All sources, beside links to what is installed and built. @param {string} folder */
function copySources(folder) {
  for (const file of listed("--cached", "--others", "--exclude-standard")) {
    if (existsSync(join(root, file))) cpSync(join(root, file), join(folder, file));
  }
  for (const ignored of listed("--others", "--ignored", "--exclude-standard", "--directory")) {
    const path = ignored.replace(/\/$/, "");
    if (path === "node_modules" || !existsSync(join(folder, dirname(path)))) continue;
    symlinkSync(join(root, path), join(folder, path));
  }
  linkPackages(folder, "node_modules");
}

/** The workspace's own packages are those of the copy. @param {string} folder @param {string} path */
function linkPackages(folder, path) {
  mkdirSync(join(folder, path));
  for (const name of readdirSync(join(root, path))) {
    if (/^@opt(-e2e)?$/.test(name))
      cpSync(join(root, path, name), join(folder, path, name), { recursive: true, verbatimSymlinks: true });
    else if (name !== ".vite" && name !== ".vitest") symlinkSync(join(root, path, name), join(folder, path, name));
  }
}

/** @param {string} folder @param {import("./faults.mjs").Fault} fault @returns {() => void} puts the sources back */
function plant(folder, { name, edits }) {
  const before = edits.map(({ file }) => ({ file, text: readFileSync(join(folder, file), "utf8") }));
  for (const { file, find, by } of edits) {
    const text = readFileSync(join(folder, file), "utf8");
    if (text.split(find).length !== 2) throw new Error(`${name}: ${file} must have once: ${find}`);
    writeFileSync(
      join(folder, file),
      text.replace(find, () => by),
    );
  }
  return () => {
    for (const { file, text } of before.reverse()) writeFileSync(join(folder, file), text);
  };
}

/** The tests that fail. @param {string} folder @param {readonly string[]} tests @returns {{ failed: string[], ran: number }} */
function failures(folder, tests) {
  const summary = join(folder, "summary.json");
  rmSync(summary, { force: true });
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const args = [
    "run",
    "--config",
    "tools/test/vitest.config.ts",
    "--project",
    "!full",
    "--reporter=json",
    `--outputFile=${summary}`,
    ...tests,
  ];
  run(process.execPath, [vitest, ...args], { quiet: true, cwd: folder, env: { OPT_TORCH_PYTHON: "" }, minutes: 30 });
  if (!existsSync(summary)) return { failed: ["vitest ended badly"], ran: 0 };
  /** @type {{ testResults: { name: string, status: string, assertionResults: { status: string, fullName: string }[] }[] }} */
  const { testResults } = JSON.parse(readFileSync(summary, "utf8"));
  const failed = testResults.flatMap(({ name, status, assertionResults }) => {
    const titles = assertionResults.filter((one) => one.status === "failed").map(({ fullName }) => fullName);
    const shown = titles.length === 0 && status === "failed" ? ["does not load"] : titles;
    return shown.map((title) => `${name.slice(folder.length + 1)}: ${title}`);
  });
  const ran = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === "passed");
  return { failed, ran: ran.length };
}

const folder = mkdtempSync(join(tmpdir(), "opt-plant-"));
let unfound = 0;
try {
  copySources(folder);
  const chosen = faults.filter(({ name }) => named.length === 0 || named.includes(name));
  const tests = [...new Set(chosen.flatMap((fault) => fault.tests))];
  const { failed: broken, ran } = failures(folder, tests);
  if (broken.length > 0 || ran === 0) {
    console.error(`without a fault, tests fail already, or none runs:\n  ${broken.join("\n  ")}`);
    process.exitCode = 1;
  }
  for (const fault of ran === 0 ? [] : chosen) {
    const restore = plant(folder, fault);
    const begin = performance.now();
    const failed = failures(folder, fault.tests).failed.filter((title) => !broken.includes(title));
    restore();
    const seconds = Math.round((performance.now() - begin) / 1000);
    if (failed.length === 0) unfound++;
    const found = failed.length === 0 ? "NOT FOUND" : `found by ${failed.length}`;
    console.log(`${fault.name}  ${fault.says}: ${found} (${seconds} s)`);
    const files = new Map(failed.map((title) => [title.slice(0, title.indexOf(": ")), title]));
    for (const [file, title] of files) {
      const count = failed.filter((each) => each.startsWith(`${file}: `)).length;
      console.log(`      ${count} as ${title}`);
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
if (unfound > 0) process.exitCode = 1;
