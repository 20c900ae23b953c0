/** `npm test`: sets up, runs every check and test, and closes with `N passed, N failed, N skipped`. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { packageChecks, sourceChecks } from "./checks.mjs";
import { build, pack } from "./packages.mjs";
import { run } from "./run.mjs";
import { setup } from "./setup.mjs";

/** What depends on the JavaScript engine itself, and so is tested on other Node versions too. */
const engineSuites = ["core", "nadam", "adam-amsgrad", "kernels-wasm"].map((name) => `packages/${name}/`);

const { values } = parseArgs({ options: { "also-node": { type: "string", multiple: true, default: [] } } });
const scratch = mkdtempSync(join(tmpdir(), "opt-test-"));
const total = { passed: 0, failed: 0, skipped: /** @type {string[]} */ ([]) };

/** @param {import("./checks.mjs").Check} check */
async function runCheck({ name, check }) {
  try {
    const reason = await check();
    if (reason) total.skipped.push(`${name} (${reason})`);
    else total.passed++;
    console.log(`${reason ? "skip" : "pass"}  ${name}`);
  } catch (error) {
    total.failed++;
    console.log(`FAIL  ${name}\n${error instanceof Error ? error.message : error}`);
  }
}

/**
 * @param {string} label
 * @param {string[]} command the program that runs vitest, and its first arguments
 * @param {string[]} [filters]
 */
function runTests(label, [program = "", ...args], filters = []) {
  const file = join(scratch, "summary.json");
  rmSync(file, { force: true });
  const reporters = ["--reporter=default", "--reporter=./tools/vitest.reporter.mjs"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/vitest.config.ts", ...reporters];
  const { ok } = run(program, [...args, ...vitest, ...filters], { env: { OPT_TEST_SUMMARY: file, ...npxEnvironment } });
  const summary = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { passed: 0, failed: 0, skipped: [] };
  total.passed += summary.passed;
  // A run that ends badly without a failed test (a crash, no test found) is one failure.
  total.failed += ok ? summary.failed : Math.max(1, summary.failed);
  for (const name of summary.skipped) total.skipped.push(label + name);
}

// The npm package of Node itself is put in place by an install script, which .npmrc forbids otherwise.
const npxEnvironment = { npm_config_ignore_scripts: "false", npm_config_loglevel: "error" };

/** @param {string} version */
function runOtherNode(version) {
  const node = ["npx", "-y", `node@${version}`];
  const probe = run("npx", [...node.slice(1), "--version"], { quiet: true, env: npxEnvironment });
  if (probe.stdout.startsWith(`v${version}`)) runTests(`Node ${version}: `, node, engineSuites);
  else total.skipped.push(`suites on Node ${version} (npx cannot get node@${version})`);
}

try {
  setup();
  for (const check of sourceChecks) await runCheck(check);
  await runCheck({ name: "build", check: build });
  runTests("", [process.execPath]);
  for (const version of values["also-node"]) runOtherNode(version);
  for (const check of packageChecks(pack(scratch))) await runCheck(check);
} catch (error) {
  total.failed++;
  console.log(`FAIL  ${error instanceof Error ? error.message : error}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

if (total.skipped.length > 0) console.log(`\nSkipped:\n${total.skipped.map((name) => `  ${name}`).join("\n")}`);
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
