/** Runs on the machine with the GPU, from the packed folder: contract suite, goldens, bench, and one table of what came out. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../..", import.meta.url));

/** cuBLAS and NVRTC as PyTorch's packages bring them, where the machine has no toolkit. */
function librariesOfPython() {
  const find =
    "import glob, nvidia; print(':'.join(p for root in nvidia.__path__ for p in glob.glob(root + '/*/lib')))";
  const { status, stdout } = spawnSync(process.env.OPT_TORCH_PYTHON ?? "python3", ["-c", find], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}
process.env.OPT_CUDA_LIBRARIES ??= librariesOfPython();

/** @param {string[]} args @param {Record<string, string>} [env] */
function node(args, env = {}) {
  const options = {
    cwd: folder,
    env: { ...process.env, ...env },
    encoding: /** @type {const} */ ("utf8"),
    maxBuffer: 1 << 28,
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
  return { ok: status === 0, stdout, stderr };
}

const typescript = ["--import", "tsx", "--conditions=@opt/source"];

/** @param {string} filter @returns {{ result: string, ok: boolean }} */
function suite(filter) {
  const file = join(folder, "summary.json");
  rmSync(file, { force: true });
  const reporters = ["--reporter=default", "--reporter=./tools/vitest.reporter.mjs"];
  const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "tools/vitest.config.ts", ...reporters, filter];
  const { ok, stdout, stderr } = node(vitest, { OPT_TEST_SUMMARY: file });
  if (!ok) console.log(stdout + stderr);
  if (!existsSync(file)) return { ok: false, result: "did not run" };
  const { passed, failed, skipped } = JSON.parse(readFileSync(file, "utf8"));
  return { ok: ok && failed === 0, result: `${passed} passed, ${failed} failed, ${skipped.length} skipped` };
}

/** @type {{ check: string, result: string, ok: boolean }[]} */
const rows = [];
const device = node([...typescript, "tools/gpu-check/device.ts"]);
rows.push({ check: "device", result: (device.stdout || device.stderr).trim(), ok: device.ok });
if (device.ok) {
  rows.push({ check: "contract suite", ...suite("packages/kernels-cuda/src/contract.test.ts") });
  rows.push({ check: "goldens", ...suite("packages/kernels-cuda/src/goldens.test.ts") });
  const bench = node([...typescript, "tools/gpu-check/bench.ts", ...process.argv.slice(2)]);
  for (const line of bench.stdout.trim().split("\n")) {
    const [check = "", result = ""] = line.split("\t");
    rows.push({ check, result, ok: true });
  }
  if (!bench.ok) rows.push({ check: "bench", result: bench.stderr.trim(), ok: false });
} else {
  for (const check of ["contract suite", "goldens", "bench"])
    rows.push({ check, result: "skipped: no device", ok: false });
}
const width = Math.max(...rows.map(({ check }) => check.length));
for (const { check, result, ok } of rows) console.log(`${ok ? "ok  " : "MISS"}  ${check.padEnd(width)}  ${result}`);
process.exitCode = rows.every(({ ok }) => ok) ? 0 : 1;
