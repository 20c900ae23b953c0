/** Child processes as the tools use them: local binaries first on the PATH, no prompt, an end, the exit code as a value. */
import { spawn, spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * @typedef {{ quiet?: boolean, cwd?: string, env?: Record<string, string>, minutes?: number }} Options
 * `quiet` keeps output for the caller instead of printing it; `minutes` is the time limit, 15 by default beside others
 * @typedef {{ ok: boolean, status: number, stdout: string, stderr: string }} Outcome
 */

/** @param {Options} options */
function settings({ quiet = false, cwd = root, env = {}, minutes }) {
  const path = [join(root, "node_modules", ".bin"), process.env.PATH].join(delimiter);
  const { FORCE_COLOR, ...inherited } = process.env;
  // What is kept for the caller is read by programs, whatever the terminal wants.
  const colour = quiet || FORCE_COLOR === undefined ? {} : { FORCE_COLOR };
  const output = /** @type {"pipe" | "inherit"} */ (quiet ? "pipe" : "inherit");
  return {
    cwd,
    env: { ...inherited, ...colour, PATH: path, ...env },
    stdio: /** @type {["ignore", "pipe" | "inherit", "pipe" | "inherit"]} */ (["ignore", output, output]),
    shell: process.platform === "win32",
    timeout: minutes && minutes * 60_000,
  };
}

/** @param {string} command @param {number | null} status @param {string | null} signal @param {string} stdout @param {string} stderr @returns {Outcome} */
function outcome(command, status, signal, stdout, stderr) {
  const problem = signal ? `\n${command} was ended by ${signal}` : "";
  return { ok: status === 0, status: status ?? 1, stdout, stderr: stderr + problem };
}

/** Runs a command to its end. @param {string} command @param {string[]} args @param {Options} [options] @returns {Outcome} */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { ...settings(options), encoding: "utf8", maxBuffer: 1 << 28 });
  const { status, signal, stdout, stderr, error } = result;
  return outcome(command, status, signal, stdout ?? "", stderr || (error?.message ?? ""));
}

/** Runs a command beside others. @param {string} command @param {string[]} args @param {Options} [options] @returns {Promise<Outcome>} */
export function start(command, args, options = {}) {
  const child = spawn(command, args, settings({ minutes: 15, ...options }));
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return new Promise((resolve) => {
    child.on("error", ({ message }) => resolve(outcome(command, 1, null, stdout, message)));
    child.on("close", (status, signal) => resolve(outcome(command, status, signal, stdout, stderr)));
  });
}
