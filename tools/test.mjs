/**
 * `npm test`: sets up, runs every check and test, and closes with `N passed, N failed, N skipped`.
 * `npm run test:full` (--full): with the tests in `*.full.test.ts`, which take long.
 * `npm run check` (--quick): what of it needs nothing but npm and takes a minute or two.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { packageChecks, sourceChecks } from "./checks.mjs";
import { mustRunOnLater, notRun } from "./must-run.mjs";
import { build, pack } from "./packages.mjs";
import { root, start } from "./run.mjs";
import { excusedTools, install, installNpmPackages, nativeBuilds } from "./setup.mjs";
import { report } from "./test-report.mjs";

/** What depends on the JavaScript engine itself, and so is tested on other Node versions too. */
const engineSuites = [
  ...["compile", "host", "rule", "tensor", "values"].map((room) => `packages/core/src/${room}/`),
  "packages/kernels-wasm/",
  // How the native device meets the engine; what its kernels compute is another matter.
  ...["memory", "errors", "threads"].map((name) => `packages/kernels-cpu/src/${name}.test.ts`),
  // WebAssembly has a fused multiply-add from Node 22 on.
  "e2e/same-run/src/wasm",
];

/** The tests of --quick: no device but js, no build, no browser. */
const quickSuites = [
  ...["core", "nn", "data", "optimizers", "testkit"].map((name) => `packages/${name}/`),
  "tools/release/",
  "tools/graph/declared",
];

const { values } = parseArgs({
  options: {
    "also-node": { type: "string", multiple: true, default: [] },
    quick: { type: "boolean", default: false },
    full: { type: "boolean", default: false },
  },
});
const total = {
  passed: 0,
  failures: /** @type {import("./test-report.mjs").Failure[]} */ ([]),
  skipped: /** @type {import("./test-report.mjs").Skipped[]} */ ([]),
};
/** Vitest's projects that run. */
const projects = values.full ? [] : ["--project", "unit", "--project", "system"];
const scratch = makeScratch();
const tarballs = join(scratch, "tarballs");

/** A folder for all that is left behind on the way; beside the sources where the system's own cannot be written. */
function makeScratch() {
  try {
    const folder = mkdtempSync(join(tmpdir(), "opt-test-"));
    chmodSync(folder, 0o755); // tests that give up root's rights must reach what they made
    return folder;
  } catch {
    mkdirSync(join(root, "runs"), { recursive: true });
    return mkdtempSync(join(root, "runs", "test-"));
  }
}

/** @param {number} begin */
const secondsSince = (begin) => `(${Math.round((performance.now() - begin) / 1000)} s)`;

/** @param {unknown} error */
const problemOf = (error) => (error instanceof Error ? error.message : String(error));

/** @param {import("./checks.mjs").Check} check */
async function runCheck({ name, check }) {
  const begin = performance.now();
  try {
    const reason = await check();
    if (reason) total.skipped.push({ file: "", name, reason });
    else total.passed++;
    console.log(`${reason ? "skip" : "pass"}  ${name} ${secondsSince(begin)}`);
  } catch (error) {
    const problem = problemOf(error);
    total.failures.push({ name, problem });
    console.log(`FAIL  ${name} ${secondsSince(begin)}\n${problem}`);
  }
}

/** @param {readonly import("./checks.mjs").Check[]} checks */
async function runChecks(checks) {
  for (const check of checks) await runCheck(check);
}

/**
 * @param {string} label
 * @param {string} node the program that runs vitest
 * @param {string[]} [filters]
 */
async function runTests(label, node, filters = []) {
  const begin = performance.now();
  const file = join(scratch, "summary.json");
  rmSync(file, { force: true });
  const reporters = ["--reporter=default", "--reporter=./tools/vitest.reporter.mjs"];
  const vitest = [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--config",
    "tools/vitest.config.ts",
    ...projects,
    ...reporters,
  ];
  const path = [dirname(node), join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const env = { OPT_TEST_SUMMARY: file, OPT_TARBALLS: tarballs, PATH: path };
  const { ok } = await start(node, [...vitest, ...filters], { env, minutes: 30 });
  /** @type {import("./vitest.reporter.mjs").Summary} */
  const summary = existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : { passed: 0, failures: [], skipped: [], ran: {} };
  total.passed += summary.passed;
  const failures = [...summary.failures];
  // A run that ends badly without a failed test (a crash, no test found) is one failure.
  if (!ok && failures.length === 0)
    failures.push({ name: "tests", problem: "vitest ended badly: see what it printed." });
  for (const each of failures) total.failures.push({ ...each, name: label + each.name });
  for (const each of summary.skipped) total.skipped.push({ ...each, file: label + each.file });
  console.log(`${ok ? "pass" : "FAIL"}  ${label}tests ${secondsSince(begin)}`);
  return summary.ran;
}

/** @param {Record<string, number>} ran @param {Parameters<typeof notRun>[2]} [must] */
function checkMustRun(ran, must) {
  const missing = notRun(ran, excusedTools(), must);
  if (missing.length > 0) throw new Error(missing.map((what) => `      did not run: ${what}`).join("\n"));
}

/** The program of another Node version, from the npm registry. @param {string} version */
async function otherNode(version) {
  // The npm package of Node itself is put in place by an install script, which .npmrc forbids otherwise.
  const env = { npm_config_ignore_scripts: "false", npm_config_loglevel: "error" };
  const asked = ["-y", `node@${version}`, "-p", "process.execPath"];
  const program = (await start("npx", asked, { quiet: true, env, minutes: 5 })).stdout.trim();
  if (!existsSync(program)) return undefined;
  const found = await start(program, ["--version"], { quiet: true });
  return found.stdout.startsWith(`v${version}`) ? program : undefined;
}

async function runEverything() {
  const others = values["also-node"].map(async (version) => ({ version, program: await otherNode(version) }));
  await install();
  // Not before: apt-get works as a user who must not look into it.
  process.env.TMPDIR = scratch;
  mkdirSync(tarballs, { recursive: true });
  // Two lines of work, one beside the other: what tests need, and what they do not wait for.
  await Promise.all([
    runChecks(nativeBuilds.map(({ name, build }) => ({ name, check: build }))),
    runChecks([
      ...sourceChecks,
      { name: "build", check: build },
      { name: "pack", check: () => pack(tarballs) },
      ...packageChecks(tarballs),
    ]),
  ]);
  const ran = await runTests("", process.execPath);
  await runCheck({ name: "what must run", check: () => checkMustRun(ran) });
  for (const { version, program } of await Promise.all(others)) {
    if (program) {
      const later = await runTests(`Node ${version}: `, program, engineSuites);
      await runCheck({ name: `what must run on Node ${version}`, check: () => checkMustRun(later, mustRunOnLater) });
    } else {
      const reason = `npx cannot get node@${version}`;
      total.skipped.push({ file: "", name: `suites on Node ${version}`, reason });
    }
  }
}

async function runQuickly() {
  await installNpmPackages();
  // Side by side: the compiler needs one core, and half of the time.
  await Promise.all([runChecks(sourceChecks), runTests("", process.execPath, quickSuites)]);
}

try {
  await (values.quick ? runQuickly() : runEverything());
} catch (error) {
  total.failures.push({ name: "set-up", problem: problemOf(error) });
  console.log(`FAIL  ${problemOf(error)}`);
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}

console.log(`\n${report(total.passed, total.failures, total.skipped)}`);
process.exit(total.failures.length === 0 && total.passed > 0 ? 0 : 1);
