/** Starts the ranks of a job on this machine, and ends all of them when one fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import type { Stream } from "node:stream";
import { LAUNCHER, memoryOf, RANK, SIZE, socketTo, TAKEN } from "./job";

/** What a rank that was asked to end has for it. */
const GRACE = 2000;
/** What cpu and wasm read: a rank's share of the cores, unless the user says another number. */
const THREADS = "OPT_NUM_THREADS";
/** Ranks that fail together: one that was killed is named before those that missed it. */
const SETTLE = 100;

export interface Launch {
  readonly size: number;
  /** Node's own options, the program and its arguments. */
  readonly args: readonly string[];
  readonly error: (text: string) => void;
}

/** Runs the job. Resolves with its exit code: 0 when all ranks ended so. */
export async function launch({ size, args, error }: Launch): Promise<number> {
  const files = memoryFiles(size);
  const children: ChildProcess[] = [];
  try {
    for (let rank = 0; rank < size; rank++) children.push(start(rank, size, args, files, children));
  } finally {
    // The ranks have them now: the launcher's own ends would keep a socket open whose rank is dead.
    for (const file of files) closeSync(file);
    for (const [rank, child] of children.entries())
      for (let other = rank + 1; other < size; other++)
        (child.stdio[socketTo(other, size)] as Stream & { destroy(): void }).destroy();
  }
  return watch(children, error);
}

/** One file for each rank, whose name is gone before the ranks begin: nothing is left behind, however the job ends. */
function memoryFiles(size: number): number[] {
  let folder: string;
  const name = `opt-run-${process.pid}-`;
  try {
    folder = mkdtempSync(`/dev/shm/${name}`); // on Linux, memory
  } catch {
    folder = mkdtempSync(join(tmpdir(), name));
  }
  try {
    return Array.from({ length: size }, (_, rank) => openSync(join(folder, String(rank)), "wx+", 0o600));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param earlier the ranks before this one, each of which has made a socket for it */
function start(
  rank: number,
  size: number,
  args: readonly string[],
  files: number[],
  earlier: ChildProcess[],
): ChildProcess {
  const stdio: (number | "inherit" | "ignore" | "pipe" | Stream)[] = ["inherit", "inherit", "inherit"];
  stdio[LAUNCHER] = "pipe";
  for (const [owner, file] of files.entries()) stdio[memoryOf(owner)] = file;
  for (let other = 0; other < size; other++) {
    const made = earlier[other]?.stdio[socketTo(rank, size)] as Stream | undefined;
    stdio[socketTo(other, size)] = other === rank ? "ignore" : (made ?? "pipe");
  }
  // More threads than cores would wait for each other.
  const threads = String(Math.max(1, Math.floor(availableParallelism() / size)));
  // What a rank of another job starts is one of this job.
  const env = { [THREADS]: threads, ...process.env, [TAKEN]: undefined, [RANK]: String(rank), [SIZE]: String(size) };
  return spawn(process.execPath, [...process.execArgv, ...args], { stdio, env });
}

function watch(children: readonly ChildProcess[], error: (text: string) => void): Promise<number> {
  const failures: { rank: number; code: number | null; signal: NodeJS.Signals | null }[] = [];
  let running = children.length;
  let stopped: NodeJS.Signals | undefined;
  const end = (signal: NodeJS.Signals) => {
    for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  };
  const endAll = (signal: NodeJS.Signals) => {
    end(signal);
    setTimeout(() => end("SIGKILL"), GRACE).unref();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const stop = (signal: NodeJS.Signals) => {
    stopped ??= signal;
    endAll(signal);
  };
  for (const signal of signals) process.on(signal, stop);
  return new Promise((resolve) => {
    const report = () => {
      if (stopped) return;
      const { rank, code, signal } = failures.find((failure) => failure.signal !== null) ?? failures[0]!;
      const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`;
      error(`opt-run: rank ${rank} of ${children.length} ${how}; the job is over\n`);
      endAll("SIGTERM");
    };
    for (const [rank, child] of children.entries()) {
      const gone = (code: number | null, signal: NodeJS.Signals | null) => {
        if (code !== 0 && failures.push({ rank, code, signal }) === 1) setTimeout(report, SETTLE);
        if (--running > 0) return;
        for (const each of signals) process.off(each, stop);
        const [first] = failures;
        setTimeout(() => resolve(stopped ? 130 : first ? (first.code ?? 1) : 0), first ? SETTLE : 0);
      };
      child.on("exit", gone);
      child.on("error", (problem) => {
        error(`opt-run: rank ${rank} does not start: ${problem.message}\n`);
        if (child.pid === undefined) gone(1, null);
      });
    }
  });
}
