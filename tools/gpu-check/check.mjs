/**
 * Runs on the machine with the GPU, from the packed folder: `./gpu-check [part ...]` does all parts, or those that are named, within
 * `--minutes` (8), and prints one table.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const folder = fileURLToPath(new URL("../..", import.meta.url));

/** @typedef {{ check: string, result: string, ok: boolean }} Row */
/** @typedef {{ ok: boolean, stdout: string, stderr: string, problem: string }} Outcome */

/**
 * What can be checked alone, in the order of its worth when time is short.
 * @type {Record<string, { seconds: number, run: (seconds: number) => Row[] }>} `seconds`: what it may take
 */
const PARTS = {
  contract: { seconds: 240, run: (seconds) => suite("contract suite", "contract.test.ts", seconds) },
  goldens: { seconds: 60, run: (seconds) => suite("goldens", "goldens.test.ts", seconds) },
  device: {
    seconds: 60,
    run: (seconds) => suite("prepared launches, staging, NVRTC, streams", "gpu.test.ts", seconds),
  },
  bench: { seconds: 120, run: bench },
  programs: { seconds: 60, run: programs },
  sanitizer: { seconds: 120, run: sanitizer },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: "string", default: "8" }, power: { type: "string", default: "28" } },
});
const unknown = positionals.filter((part) => PARTS[part] === undefined);
if (unknown.length > 0) {
  console.error(`gpu-check: the parts are ${Object.keys(PARTS).join(", ")}, got ${unknown.join(", ")}.`);
  process.exit(2);
}

/** NVRTC as PyTorch's packages bring it, where the machine has no toolkit. */
function librariesOfPython() {
  const find =
    "import glob, nvidia; print(':'.join(p for root in nvidia.__path__ for p in glob.glob(root + '/*/lib')))";
  const { status, stdout } = spawnSync(process.env.OPT_TORCH_PYTHON ?? "python3", ["-c", find], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}
process.env.OPT_CUDA_LIBRARIES ??= librariesOfPython();

/** @param {number} seconds @param {string} program @param {string[]} args @param {Record<string, string>} [env] @returns {Outcome} */
function start(seconds, program, args, env = {}) {
  const { status, signal, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    encoding: /** @type {const} */ ("utf8"),
    maxBuffer: 1 << 28,
    timeout: Math.ceil(1000 * seconds),
    killSignal: "SIGKILL",
  });
  const said = (stderr?.trim() || stdout?.trim() || "it does not start").split("\n").slice(-12).join("\n");
  const problem = signal === "SIGKILL" ? "ended: its time was over" : said;
  return { ok: status === 0, stdout: stdout ?? "", stderr: stderr ?? "", problem };
}

const typescript = ["--import", "tsx", "--conditions=@opt/source"];
const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/test/vitest.config.ts"];

/** @param {string} check @param {string} file @param {number} seconds @returns {Row[]} */
function suite(check, file, seconds) {
  const summary = join(folder, "summary.json");
  rmSync(summary, { force: true });
  const reporters = ["--reporter=default", "--reporter=./tools/test/vitest.reporter.mjs"];
  const args = [...vitest, ...reporters, `packages/kernels-cuda/src/${file}`];
  const { ok, stdout, stderr, problem } = start(seconds, process.execPath, args, { OPT_TEST_SUMMARY: summary });
  if (!ok) console.log(stdout + stderr);
  if (!existsSync(summary)) return [{ check, ok: false, result: problem }];
  const { passed, failures, skipped } = JSON.parse(readFileSync(summary, "utf8"));
  const result = `${passed} passed, ${failures.length} failed, ${skipped.length} skipped`;
  return [{ check, ok: ok && failures.length === 0 && passed > 0, result }];
}

/** @param {number} seconds @returns {Row[]} */
function bench(seconds) {
  const { ok, stdout, problem } = start(seconds, process.execPath, [
    ...typescript,
    "tools/bench/cuda/steps.ts",
    values.power,
  ]);
  const lines = stdout.split("\n").map((line) => line.split("\t"));
  const rows = lines.flatMap(([check = "", result]) => (result === undefined ? [] : { check, result, ok: true }));
  return ok ? rows : [...rows, { check: "bench", result: problem, ok }];
}

/** Random programs for most of the time that there is. @param {number} seconds */
const programArgs = (seconds) => [...typescript, "tools/gpu-check/programs.ts", String(0.75 * seconds)];

/** @param {number} seconds @returns {Row[]} */
function programs(seconds) {
  const { ok, stdout, problem } = start(seconds, process.execPath, programArgs(seconds));
  return [{ check: "random programs", result: ok ? stdout.trim() : problem, ok }];
}

/** @param {number} seconds @returns {Row[]} */
function sanitizer(seconds) {
  const check = "compute-sanitizer";
  if (!start(seconds, check, ["--version"]).ok) return [{ check, result: "skipped: it is not here", ok: true }];
  const program = [process.execPath, ...programArgs(seconds)];
  const { ok, stdout, problem } = start(seconds, check, ["--error-exitcode", "9", ...program]);
  return [{ check, result: stdout.match(/ERROR SUMMARY: .*/)?.[0] ?? problem, ok }];
}

const end = performance.now() + 60_000 * Number(values.minutes);
const device = start(60, process.execPath, [...typescript, "tools/gpu-check/device.ts"]);
/** @type {Row[]} */
const rows = [{ check: "device", result: device.ok ? device.stdout.trim() : device.problem, ok: device.ok }];
for (const [part, { seconds, run }] of device.ok ? Object.entries(PARTS) : []) {
  if (positionals.length > 0 && !positionals.includes(part)) continue;
  const begin = performance.now();
  rows.push(...run(Math.max(0.001, Math.min(seconds, (end - begin) / 1000))));
  console.log(`${part}: ${Math.round((performance.now() - begin) / 1000)} s`);
}
const width = Math.max(...rows.map(({ check }) => check.length));
for (const { check, result, ok } of rows) console.log(`${ok ? "ok  " : "MISS"}  ${check.padEnd(width)}  ${result}`);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
