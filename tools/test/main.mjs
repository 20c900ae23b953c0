/**
 * `npm test`: sets up, runs every check and test, and closes with `N passed, N failed, N skipped`.
 * `npm run test:full` (--full): with the tests in `*.full.test.ts`, which take long.
 * `npm run check` (--quick): what of it needs nothing but npm and takes a minute or two.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { nodeOf, pack } from "../workspace/packages.mjs";
import { root, start } from "../workspace/run.mjs";
import { excusedTools, install, installNpmPackages, nativeBuilds } from "../workspace/setup.mjs";
import { packageChecks, sourceChecks } from "./checks.mjs";
import { mustRun, mustRunOnLater, notRun } from "./must-run.mjs";
import { report } from "./report.mjs";

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
const quickSuites = [...["core", "nn", "data", "optimizers", "testkit"].map((name) => `packages/${name}/`), "tools/"];

const { values } = parseArgs({
  options: {
    "also-node": { type: "string", multiple: true, default: [] },
    quick: { type: "boolean", default: false },
    full: { type: "boolean", default: false },
  },
});

let passed = 0;
/** @type {import("./vitest.reporter.mjs").Failure[]} */
const failures = [];
/** @type {import("./vitest.reporter.mjs").Skipped[]} */
const skipped = [];

/** A folder for all that is left behind on the way. Tests that give up root's rights must reach what they made. */
const scratch = mkdtempSync(join(tmpdir(), "opt-test-"));
chmodSync(scratch, 0o755);
const tarballs = join(scratch, "tarballs");

/** @param {number} begin */
const secondsSince = (begin) => `(${Math.round((performance.now() - begin) / 1000)} s)`;

/** One after the other. @param {readonly import("./checks.mjs").Check[]} checks */
async function runChecks(checks) {
  for (const { name, check } of checks) {
    const begin = performance.now();
    try {
      const reason = await check();
      if (reason) skipped.push({ file: "", name, reason });
      else passed++;
      console.log(`${reason ? "skip" : "pass"}  ${name} ${secondsSince(begin)}`);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      failures.push({ name, problem });
      console.log(`FAIL  ${name} ${secondsSince(begin)}\n${problem}`);
    }
  }
}

/**
 * @param {string} label
 * @param {string} node the program that runs vitest
 * @param {string[]} filters
 * @param {typeof mustRun} must
 */
async function runTests(label, node, filters, must) {
  const begin = performance.now();
  const file = join(scratch, "summary.json");
  rmSync(file, { force: true });
  const projects = values.full ? [] : ["--project", "!full"];
  const reporters = ["--reporter=default", "--reporter=./tools/test/vitest.reporter.mjs"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/test/vitest.config.ts"];
  const path = [dirname(node), join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const all = values.full ? "1" : "";
  const env = { OPT_TEST_SUMMARY: file, OPT_TARBALLS: tarballs, PATH: path, OPT_TEST_ALL: all };
  const { ok } = await start(node, [...vitest, ...projects, ...reporters, ...filters], { env, minutes: 30 });
  /** @type {import("./vitest.reporter.mjs").Summary} */
  const summary = existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : { passed: 0, failures: [], skipped: [], ran: {} };
  passed += summary.passed;
  failures.push(...summary.failures.map((each) => ({ ...each, name: label + each.name })));
  skipped.push(...summary.skipped.map((each) => ({ ...each, file: label + each.file })));
  // A run that ends badly without a failed test (a crash, no test found) is one failure.
  if (!ok && summary.failures.length === 0)
    failures.push({ name: `${label}tests`, problem: "vitest ended badly: see what it printed." });
  console.log(`${ok ? "pass" : "FAIL"}  ${label}tests ${secondsSince(begin)}`);
  const missing = notRun(summary.ran, excusedTools(), must).join(", ");
  if (missing !== "") failures.push({ name: `${label}what must run`, problem: `nothing passed in ${missing}` });
}

async function runEverything() {
  const others = values["also-node"].map(async (version) => ({ version, program: await nodeOf(version) }));
  await install();
  // Not before: apt-get works as a user who must not look into it.
  process.env.TMPDIR = scratch;
  mkdirSync(tarballs, { recursive: true });
  // Side by side: some of it keeps one processor busy, some of it more.
  await Promise.all([
    ...nativeBuilds(values.full).map((each) => runChecks([each])),
    runChecks([
      ...sourceChecks,
      { name: "build", check: async () => (await import("../workspace/build.mjs")).build() },
      { name: "pack", check: () => pack(tarballs) },
      ...packageChecks(tarballs),
    ]),
  ]);
  await runTests("", process.execPath, [], mustRun);
  for (const { version, program } of await Promise.all(others)) {
    if (program) await runTests(`Node ${version}: `, program, engineSuites, mustRunOnLater);
    else skipped.push({ file: "", name: `suites on Node ${version}`, reason: `npx cannot get node@${version}` });
  }
}

async function runQuickly() {
  await installNpmPackages();
  // Side by side: the compiler needs one core, and half of the time.
  await Promise.all([runChecks(sourceChecks), runTests("", process.execPath, quickSuites, [])]);
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
