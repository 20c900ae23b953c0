/** Child processes as the tools use them: local binaries first on the PATH, no daemon, no prompt, an end, the exit code as a value. */
import { spawn, spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const onWindows = process.platform === "win32";

/** @param {Record<string, string>} own @param {boolean} quiet */
function environment(own, quiet) {
  const path = [join(root, "node_modules", ".bin"), process.env.PATH].join(delimiter);
  const { FORCE_COLOR, ...inherited } = process.env;
  // What is kept for the caller is read by programs, whatever the terminal wants.
  const colour = quiet || FORCE_COLOR === undefined ? {} : { FORCE_COLOR };
  return { ...inherited, ...colour, PATH: path, NX_DAEMON: "false", NX_TUI: "false", ...own };
}

/**
 * @typedef {{ quiet?: boolean, cwd?: string, env?: Record<string, string> }} Options `quiet` keeps output for the caller instead of printing it
 * @typedef {{ ok: boolean, status: number, stdout: string, stderr: string }} Outcome
 */

/**
 * Runs a command to its end.
 * @param {string} command
 * @param {string[]} args
 * @param {Options} [options]
 * @returns {Outcome}
 */
export function run(command, args, { quiet = false, cwd = root, env = {} } = {}) {
  const result = spawnSync(command, args, {
    cwd,
    env: environment(env, quiet),
    stdio: quiet ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit"],
    encoding: "utf8",
    maxBuffer: 1 << 28,
    shell: onWindows,
  });
  const problem = result.error?.message ?? (result.signal ? `${command} was ended by ${result.signal}` : "");
  return {
    ok: result.status === 0,
    status: result.status ?? 1,
    stdout: result.stdout ?? "",
    stderr: result.stderr || problem,
  };
}

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();

/**
 * Runs a command beside others, for `minutes` at most. Then it and all that it started are ended, and it has failed.
 * @param {string} command
 * @param {string[]} args
 * @param {Options & { minutes?: number }} [options]
 * @returns {Promise<Outcome>}
 */
export function start(command, args, { quiet = false, cwd = root, env = {}, minutes = 15 } = {}) {
  const child = spawn(command, args, {
    cwd,
    env: environment(env, quiet),
    stdio: quiet ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit"],
    shell: onWindows,
    // A process group of its own, so that what it started can be ended with it.
    detached: !onWindows,
  });
  running.add(child);
  let problem = "";
  const limit = setTimeout(() => {
    problem = `\n${command} was ended after ${minutes} minutes`;
    end(child, "SIGTERM");
    setTimeout(() => end(child, "SIGKILL"), 5_000).unref();
  }, minutes * 60_000);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  return new Promise((resolve) => {
    const settle = (/** @type {number} */ status) => {
      clearTimeout(limit);
      running.delete(child);
      if (problem && !quiet) console.error(problem.trim());
      resolve({ ok: status === 0, status, stdout, stderr: stderr + problem });
    };
    child.on("error", (error) => {
      problem ||= error.message;
      settle(1);
    });
    child.on("exit", (code, signal) => {
      if (signal) problem ||= `\n${command} was ended by ${signal}`;
      // What is left of its output comes before `close`, which waits for all that hold the pipes: not for long.
      const patience = setTimeout(end, 5_000, child, "SIGKILL");
      child.on("close", () => {
        clearTimeout(patience);
        settle(code ?? 1);
      });
    });
  });
}

/** @param {import("node:child_process").ChildProcess} child @param {NodeJS.Signals} signal */
function end(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(onWindows ? child.pid : -child.pid, signal);
  } catch {
    // It has ended by itself.
  }
}

process.on("exit", () => {
  for (const child of running) end(child, "SIGKILL");
});
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.once(signal, () => {
    if (running.size > 0) process.exit(130);
    process.kill(process.pid, signal);
  });
}
