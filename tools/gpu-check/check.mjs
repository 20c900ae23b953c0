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
/** @typedef {{ ok: boolean, stdout: string, stderr: string, late: boolean }} Outcome */

/**
 * What can be checked alone, in the order of its worth when time is short.
 * @type {Record<string, { seconds: number, run: (seconds: number) => Row[] }>} `seconds`: what it may take
 */
const PARTS = {
  contract: { seconds: 240, run: () => [suite("contract suite", ["contract.test.ts"])] },
  goldens: { seconds: 60, run: () => [suite("goldens", ["goldens.test.ts"])] },
  device: { seconds: 60, run: () => [suite("prepared launches, staging, tables, NVRTC, streams", ["gpu.test.ts"])] },
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
const end = performance.now() + 60_000 * Number(values.minutes);
/** When the part that runs must be done. */
let deadline = end;

/** NVRTC as PyTorch's packages bring it, where the machine has no toolkit. */
function librariesOfPython() {
  const find =
    "import glob, nvidia; print(':'.join(p for root in nvidia.__path__ for p in glob.glob(root + '/*/lib')))";
  const { status, stdout } = spawnSync(process.env.OPT_TORCH_PYTHON ?? "python3", ["-c", find], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}
process.env.OPT_CUDA_LIBRARIES ??= librariesOfPython();

/** @param {string} program @param {string[]} args @param {Record<string, string>} [env] @returns {Outcome} */
function start(program, args, env = {}) {
  const { status, signal, stdout, stderr } = spawnSync(program, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    encoding: /** @type {const} */ ("utf8"),
    maxBuffer: 1 << 28,
    timeout: Math.max(1, Math.ceil(deadline - performance.now())),
    killSignal: "SIGKILL",
  });
  return { ok: status === 0, stdout: stdout ?? "", stderr: stderr ?? "", late: signal === "SIGKILL" };
}

const typescript = ["--import", "tsx", "--conditions=@opt/source"];
const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/vitest.config.ts"];
const LATE = "ended: its time was over";

/** @param {string} check @param {[string, ...string[]]} filter @param {Record<string, string>} [env] @returns {Row} */
function suite(check, [file, ...filter], env = {}) {
  const summary = join(folder, "summary.json");
  rmSync(summary, { force: true });
  const reporters = ["--reporter=default", "--reporter=./tools/vitest.reporter.mjs"];
  const args = [...vitest, ...reporters, `packages/kernels-cuda/src/${file}`, ...filter];
  const { ok, stdout, stderr, late } = start(process.execPath, args, { ...env, OPT_TEST_SUMMARY: summary });
  if (!ok) console.log(stdout + stderr);
  if (!existsSync(summary)) return { check, ok: false, result: late ? LATE : "did not run" };
  const { passed, failures, skipped } = JSON.parse(readFileSync(summary, "utf8"));
  const result = `${passed} passed, ${failures.length} failed, ${skipped.length} skipped`;
  return { check, ok: ok && failures.length === 0 && passed > 0, result };
}

/** @param {Outcome} outcome */
const why = ({ late, stderr, stdout }) =>
  late ? LATE : (stderr.trim() || stdout.trim()).split("\n").slice(-12).join("\n");

/** @returns {Row[]} */
function bench() {
  const outcome = start(process.execPath, [...typescript, "tools/bench/cuda/steps.ts", values.power]);
  const lines = outcome.stdout.split("\n").filter((line) => line.includes("\t"));
  const rows = lines.map((line) => {
    const [check = "", result = ""] = line.split("\t");
    return { check, result, ok: true };
  });
  return outcome.ok ? rows : [...rows, { check: "bench", result: why(outcome), ok: false }];
}

/** @param {number} seconds @returns {Row[]} */
function programs(seconds) {
  const outcome = start(process.execPath, [...typescript, "tools/gpu-check/programs.ts", String(0.75 * seconds)]);
  const result = outcome.ok ? outcome.stdout.trim() : why(outcome);
  return [{ check: "random programs", result, ok: outcome.ok }];
}

/** @returns {Row[]} */
function sanitizer() {
  const check = "compute-sanitizer";
  const found = start(check, ["--version"]);
  if (!found.ok) return [{ check, result: "skipped: it is not here", ok: true }];
  const program = [process.execPath, ...typescript, "tools/gpu-check/touch.ts"];
  const outcome = start(check, ["--error-exitcode", "9", ...program]);
  const [summary = why(outcome)] = outcome.stdout.match(/ERROR SUMMARY: .*/) ?? [];
  return [{ check, result: summary, ok: outcome.ok }];
}

/** @type {Row[]} */
const rows = [];
const device = start(process.execPath, [...typescript, "tools/gpu-check/device.ts"]);
rows.push({ check: "device", result: (device.stdout || device.stderr).trim(), ok: device.ok });
for (const [part, { seconds, run }] of Object.entries(PARTS)) {
  if (positionals.length > 0 && !positionals.includes(part)) continue;
  if (!device.ok) {
    rows.push({ check: part, result: "skipped: no device", ok: false });
    continue;
  }
  const begin = performance.now();
  deadline = Math.min(end, begin + 1000 * seconds);
  if (deadline - begin < 5000) {
    rows.push({ check: part, result: `skipped: ${values.minutes} minutes were over`, ok: false });
    continue;
  }
  const own = run((deadline - begin) / 1000);
  console.log(`${part}: ${Math.round((performance.now() - begin) / 1000)} s`);
  rows.push(...own);
}
const width = Math.max(...rows.map(({ check }) => check.length));
for (const { check, result, ok } of rows) console.log(`${ok ? "ok  " : "MISS"}  ${check.padEnd(width)}  ${result}`);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
