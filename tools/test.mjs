/**
 * `npm test`: sets up, runs every check and test, and closes with `N passed, N failed, N skipped`.
 * `npm run check` (--quick): what of it needs nothing but npm and takes a minute or two.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { packageChecks, sourceChecks } from "./checks.mjs";
import { notRun } from "./must-run.mjs";
import { build, pack, publicPackages } from "./packages.mjs";
import { root, start } from "./run.mjs";
import { excusedTools, install, installNpmPackages, nativeBuilds } from "./setup.mjs";

/** The optimizers' packages. */
const algorithms = publicPackages()
  .filter(({ exports }) => exports?.["./rules"])
  .map(({ folder }) => basename(folder));

/** What depends on the JavaScript engine itself, and so is tested on other Node versions too. */
const engineSuites = [
  ...["core", ...algorithms, "kernels-wasm"].map((name) => `packages/${name}/`),
  // How the native device meets the engine; what its kernels compute is another matter.
  ...["memory", "refusals", "threads"].map((name) => `packages/kernels-cpu/src/${name}.test.ts`),
];

/** The tests of --quick: no device but js, no build, no browser. */
const quickSuites = [
  ...["core", "nn", "data", ...algorithms, "testkit"].map((name) => `packages/${name}/`),
  "tools/release/",
  "tools/graph/declared",
];

const { values } = parseArgs({
  options: { "also-node": { type: "string", multiple: true, default: [] }, quick: { type: "boolean", default: false } },
});
const total = { passed: 0, failed: 0, skipped: /** @type {string[]} */ ([]) };
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

/** @param {import("./checks.mjs").Check} check */
async function runCheck({ name, check }) {
  const begin = performance.now();
  try {
    const reason = await check();
    if (reason) total.skipped.push(`${name} (${reason})`);
    else total.passed++;
    console.log(`${reason ? "skip" : "pass"}  ${name} ${secondsSince(begin)}`);
  } catch (error) {
    total.failed++;
    console.log(`FAIL  ${name} ${secondsSince(begin)}\n${error instanceof Error ? error.message : error}`);
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
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/vitest.config.ts", ...reporters];
  const path = [dirname(node), join(root, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const env = { OPT_TEST_SUMMARY: file, OPT_TARBALLS: tarballs, PATH: path };
  const { ok } = await start(node, [...vitest, ...filters], { env, minutes: 30 });
  /** @type {import("./vitest.reporter.mjs").Summary} */
  const summary = existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : { passed: 0, failed: 0, skipped: [], ran: {} };
  total.passed += summary.passed;
  // A run that ends badly without a failed test (a crash, no test found) is one failure.
  total.failed += ok ? summary.failed : Math.max(1, summary.failed);
  for (const name of summary.skipped) total.skipped.push(label + name);
  console.log(`${ok ? "pass" : "FAIL"}  ${label}tests ${secondsSince(begin)}`);
  return summary.ran;
}

/** @param {Record<string, number>} ran */
function checkMustRun(ran) {
  const missing = notRun(ran, excusedTools());
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
    if (program) await runTests(`Node ${version}: `, program, engineSuites);
    else total.skipped.push(`suites on Node ${version} (npx cannot get node@${version})`);
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
  total.failed++;
  console.log(`FAIL  ${error instanceof Error ? error.message : error}`);
} finally {
  rmSync(scratch, { recursive: true, force: true, maxRetries: 3 });
}

if (total.skipped.length > 0) console.log(`\nSkipped:\n${total.skipped.map((name) => `  ${name}`).join("\n")}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);
