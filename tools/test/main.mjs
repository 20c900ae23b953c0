/**
 * `npm test`: sets up, runs the targets of all projects and the checks of the packages, and ends with `N passed, N failed, N skipped`.
 * `npm run test:full` (--full): with the tests in `*.full.test.ts`, which take long.
 * `npm run check` (--quick): what of it needs nothing but npm and takes a minute or two.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { nodeOf, pack } from "../workspace/packages.mjs";
import { root, start } from "../workspace/run.mjs";
import { excusedTools, install, installNpmPackages } from "../workspace/setup.mjs";
import { mustRun, mustRunOnLater, notRun } from "./must-run.mjs";
import { packageChecks } from "./packages.mjs";
import { report } from "./report.mjs";

/** What depends on the JavaScript engine itself, and so is tested on other Node versions too. */
const engineSuites = [
  ...["compile", "host", "rule", "tensor", "values"].map((room) => `packages/core/src/${room}/`),
  "packages/kernels-wasm/",
  // How the native device meets the engine; what its kernels compute is another matter.
  ...["memory", "errors", "threads"].map((name) => `packages/kernels-cpu/src/${name}.test.ts`),
  // WebAssembly has a fused multiply-add from Node 22 on.
  "e2e/same-run/src/wasm",
  "e2e/leaderboard/src/wasm",
];

/** The projects of --quick, whose tests need no device but js, no build and no browser. */
const quickProjects = ["core", "nn", "data", "testkit", "tools", "packages/optimizers/*"].join(",");

const { values } = parseArgs({
  options: {
    "also-node": { type: "string", multiple: true, default: [] },
    quick: { type: "boolean", default: false },
    full: { type: "boolean", default: false },
  },
});

/** @typedef {import("./vitest.reporter.mjs").FileSummary} FileSummary */

let passed = 0;
/** @type {import("./vitest.reporter.mjs").Failure[]} */
const failures = [];
/** @type {import("./vitest.reporter.mjs").Skipped[]} */
const skipped = [];

/** A folder for all that is left behind on the way. Tests that give up root's rights must reach what they made. */
const scratch = mkdtempSync(join(tmpdir(), "opt-test-"));
chmodSync(scratch, 0o755);
const tarballs = join(scratch, "tarballs");
/** Where Nx puts the documentation's pages. */
const site = join(root, "runs/docs");

/** @param {number} begin */
const secondsSince = (begin) => `(${Math.round((performance.now() - begin) / 1000)} s)`;

/** One after the other. @param {readonly import("./packages.mjs").Check[]} checks */
async function runChecks(checks) {
  for (const { name, check } of checks) {
    const begin = performance.now();
    try {
      await check();
      passed++;
      console.log(`pass  ${name} ${secondsSince(begin)}`);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      failures.push({ name, problem });
      console.log(`FAIL  ${name} ${secondsSince(begin)}\n${problem}`);
    }
  }
}

/** @param {string} label @param {readonly FileSummary[]} files @param {typeof mustRun} must */
function count(label, files, must) {
  for (const file of files) {
    passed += file.passed;
    failures.push(...file.failures.map((each) => ({ ...each, name: label + each.name })));
    skipped.push(...file.skipped.map((each) => ({ ...each, file: label + each.file })));
  }
  const ran = Object.fromEntries(files.map(({ file, passed }) => [file, passed]));
  const missing = notRun(ran, excusedTools(), must).join(", ");
  if (missing !== "") failures.push({ name: `${label}what must run`, problem: `nothing passed in ${missing}` });
}

/**
 * Runs targets of projects with Nx, and counts each task. Those of tests leave a summary of each file.
 * @param {string} targets apart by commas
 * @param {readonly string[]} [options]
 * @param {typeof mustRun} [must] what of tests must run
 */
async function runTargets(targets, options = [], must = []) {
  const begin = performance.now();
  const file = join(scratch, `${targets}.json`);
  const env = { OPT_TASKS: file, OPT_TARBALLS: tarballs, OPT_SITE: site, OPT_TEST_ALL: values.full ? "1" : "" };
  const { ok } = await start("nx", ["run-many", "--output-style=static", "--targets", targets, ...options], {
    env,
    minutes: 60,
  });
  /** @type {{ id: string, status: string, terminalOutput: string }[]} */
  const tasks = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  /** @type {FileSummary[]} */
  const files = [];
  for (const { id, status, terminalOutput } of tasks) {
    const [project = "", target] = id.split(":");
    const summary = join(root, "runs/test", `${project}.json`);
    const hasFailed = status === "failure" || status === "skipped";
    const tested = target === "test" && existsSync(summary) ? JSON.parse(readFileSync(summary, "utf8")) : [];
    files.push(...tested);
    if (hasFailed && !tested.some((/** @type {FileSummary} */ each) => each.failures.length > 0))
      failures.push({ name: id, problem: status === "skipped" ? "what it depends on has failed" : terminalOutput });
    else if (!hasFailed && target !== "test") passed++;
    for (const [, reason = ""] of target === "native" ? terminalOutput.matchAll(/: skipped,? (.*)/g) : [])
      skipped.push({ file: "", name: id, reason });
  }
  if (!ok && tasks.every(({ status }) => status !== "failure"))
    failures.push({ name: "Nx", problem: "it ended badly: see what it printed." });
  console.log(`${ok ? "pass" : "FAIL"}  ${targets} ${secondsSince(begin)}`);
  count("", files, must);
}

/** What depends on the engine, again on another Node. @param {string} version @param {string} node the program */
async function runOn(version, node) {
  const begin = performance.now();
  const file = join(scratch, "summary.json");
  rmSync(file, { force: true });
  const projects = values.full ? [] : ["--project", "!full"];
  const reporters = ["--reporter=default", "--reporter=./tools/test/vitest.reporter.mjs"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/test/vitest.config.ts"];
  const path = [dirname(node), join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const env = { OPT_TEST_SUMMARY: file, PATH: path, OPT_TEST_ALL: values.full ? "1" : "" };
  const { ok } = await start(node, [...vitest, ...projects, ...reporters, ...engineSuites], { env, minutes: 30 });
  /** @type {FileSummary[]} */
  const files = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  const label = `Node ${version}: `;
  // A run that ends badly without a failed test (a crash, no test found) is one failure.
  if (!ok && files.every((each) => each.failures.length === 0))
    failures.push({ name: `${label}tests`, problem: "vitest ended badly: see what it printed." });
  console.log(`${ok ? "pass" : "FAIL"}  ${label}tests ${secondsSince(begin)}`);
  count(label, files, mustRunOnLater);
}

async function runEverything() {
  const others = values["also-node"].map(async (version) => ({ version, program: await nodeOf(version) }));
  await install();
  // Not before: apt-get works as a user who must not look into it.
  process.env.TMPDIR = scratch;
  mkdirSync(tarballs, { recursive: true });
  await runTargets("native,build,docs,lint,typecheck", ["--parallel", "3"]);
  await runChecks([{ name: "pack", check: () => pack(tarballs) }, ...packageChecks(tarballs)]);
  // What they depend on is built: without it, all are one run of vitest.
  await runTargets("test", ["--excludeTaskDependencies"], mustRun);
  for (const { version, program } of await Promise.all(others)) {
    if (program) await runOn(version, program);
    else skipped.push({ file: "", name: `suites on Node ${version}`, reason: `npx cannot get node@${version}` });
  }
}

async function runQuickly() {
  await installNpmPackages();
  // Side by side: the compiler needs one core, and half of the time.
  await Promise.all([runTargets("lint,typecheck"), runTargets("test", ["--projects", quickProjects])]);
}

try {
  await (values.quick ? runQuickly() : runEverything());
} catch (error) {
  const problem = error instanceof Error ? error.message : String(error);
  failures.push({ name: "set-up", problem });
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}

console.log(`\n${report(passed, failures, skipped)}`);
process.exit(failures.length === 0 && passed > 0 ? 0 : 1);
