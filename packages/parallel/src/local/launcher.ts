/** Starts the ranks of a job on this machine, and ends all of them when one fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import type { Socket } from "node:net";
import { availableParallelism, constants, tmpdir } from "node:os";
import { join } from "node:path";
import { coreBinders } from "./cores";
import { filesOf, KEY, LAUNCHER, memoryOf, NAME, RANK, SIZE, TAKEN } from "./job";
import { RankLines } from "./lines";
import { BEGIN, CONNECT, CONNECTED, GONE, LISTENING } from "./rendezvous";

/** Seconds that a rank has to end after it was asked to, as torchrun's. */
export const GRACE = 30;
/** What cpu and wasm read: a rank's share of the cores, unless the user says another number. */
const THREADS = "OPT_NUM_THREADS";
/** Ranks that fail together: one that was killed is named before those that missed it. */
const SETTLE = 100;

export interface Launch {
  readonly size: number;
  /** Node's own options, the program and its arguments. */
  readonly args: readonly string[];
  readonly error: (text: string) => void;
  /** How often a job whose rank failed begins again. */
  readonly restarts?: number;
  /** Seconds that ranks have to end after SIGTERM. Default 30. */
  readonly grace?: number;
  /** Ranks write to the launcher's own streams. Without it each line gets the number of its rank. */
  readonly isPlain?: boolean;
  /** Variables for the ranks, beside those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Why a life of the job ended. */
export interface End {
  /** As a shell has it: 128 + its number for a signal. */
  readonly code: number;
  /** A rank failed: the job may begin again. */
  readonly failure?: string;
  /** It may not. */
  readonly isFinal?: boolean;
}

/** How many open files a process may have; undefined where the system does not say. */
function fileLimit(): number | undefined {
  const { userLimits } = process.report.getReport() as unknown as { userLimits?: { open_files?: { soft?: unknown } } };
  const limit = Number(userLimits?.open_files?.soft);
  return Number.isFinite(limit) ? limit : undefined;
}

/** Why so many ranks cannot start; undefined where they can. */
export function tooMany(size: number, limit = fileLimit()): string | undefined {
  if (limit === undefined || filesOf(size) <= limit) return undefined;
  const most = Math.max(0, Math.floor((limit - filesOf(0)) / 2));
  return `${size} ranks need ${filesOf(size)} open files in each process, the limit is ${limit}; ${most} ranks fit, or raise it: ulimit -n ${filesOf(size)}`;
}

/** Runs the job, once more after each failure as long as restarts are left. Resolves with its exit code: 0 when all ranks ended so. */
export function launch({ restarts = 0, ...job }: Launch): Promise<number> {
  return restarted(restarts, job.error, () => live(job));
}

/** Lives until one ends without a failure, or with one that is final, or restarts are used up. */
export async function restarted(
  restarts: number,
  error: (text: string) => void,
  live: () => Promise<End>,
): Promise<number> {
  for (let life = 1; ; life++) {
    const { code, failure, isFinal = false } = await live();
    if (failure === undefined) return code;
    const isLast = isFinal || life > restarts;
    error(`opt-run: ${failure}; ${isLast ? "the job is over" : `restart ${life} of ${restarts}`}\n`);
    if (isLast) return code;
  }
}

async function live({
  size,
  args,
  error,
  grace = GRACE,
  isPlain = false,
  env = {},
}: Omit<Launch, "restarts">): Promise<End> {
  const files = memoryFiles(size);
  const secrets = { [NAME]: randomBytes(8).toString("hex"), [KEY]: randomBytes(16).toString("hex") };
  const binders = process.env[THREADS] === undefined ? coreBinders(size) : undefined;
  const command = [process.execPath, ...process.execArgv, ...args];
  const children: ChildProcess[] = [];
  const lines = isPlain ? undefined : linesToStreams();
  try {
    for (let rank = 0; rank < size; rank++)
      children.push(start(rank, size, [...(binders?.[rank] ?? []), ...command], files, { ...env, ...secrets }, lines));
  } finally {
    for (const file of files) closeSync(file); // the ranks have them now
  }
  introduce(children);
  return watch(children, error, grace);
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

/** Tells the ranks when all listen, when all are connected, and which has ended before. */
function introduce(children: readonly ChildProcess[]): void {
  const said = { [LISTENING]: new Set<number>(), [CONNECTED]: new Set<number>() };
  const answers = { [LISTENING]: CONNECT, [CONNECTED]: BEGIN };
  const tellAll = (line: string) => {
    for (const { stdio } of children) (stdio[LAUNCHER] as Socket | null | undefined)?.write(`${line}\n`);
  };
  for (const [rank, child] of children.entries()) {
    const socket = child.stdio[LAUNCHER] as Socket | null | undefined;
    socket?.on("error", () => {}); // the rank has ended
    socket?.on("data", (chunk: Buffer) => {
      for (const line of chunk.toString().split("\n") as (keyof typeof said | "")[]) {
        if (line === "" || said[line]?.add(rank).size !== children.length) continue;
        tellAll(answers[line]);
      }
    });
    child.on("exit", () => {
      if (said[CONNECTED].size < children.length) tellAll(`${GONE} ${rank}`);
    });
  }
}

function start(
  rank: number,
  size: number,
  [command, ...args]: readonly string[],
  files: readonly number[],
  given: Launch["env"],
  lines: RankStreams | undefined,
): ChildProcess {
  const way = lines ? "pipe" : "inherit";
  const stdio: (number | "inherit" | "pipe")[] = ["inherit", way, way];
  stdio[LAUNCHER] = "pipe";
  for (const [owner, file] of files.entries()) stdio[memoryOf(owner)] = file;
  // More threads than cores would wait for each other.
  const threads = String(Math.max(1, Math.floor(availableParallelism() / size)));
  // What a rank of another job starts is one of this job.
  const place = { [TAKEN]: undefined, [RANK]: String(rank), [SIZE]: String(size), ...given };
  const env = { [THREADS]: threads, ...process.env, ...place };
  const child = spawn(command!, args, { stdio, env });
  for (const name of ["stdout", "stderr"] as const) {
    const stream = child[name] as Socket | null;
    if (!stream) continue;
    lines?.[name].follow(stream, rank);
    // What the rank has started may keep its end open: the job does not wait for it.
    child.on("exit", () => setTimeout(() => stream.destroy(), DRAIN).unref());
  }
  return child;
}

/** Milliseconds that what a rank has written takes at most to come, once it has ended. */
const DRAIN = 1000;

export interface RankStreams {
  readonly stdout: RankLines;
  readonly stderr: RankLines;
}

export function linesToStreams(): RankStreams {
  const to = (stream: NodeJS.WriteStream) => new RankLines((text) => void stream.write(text));
  return { stdout: to(process.stdout), stderr: to(process.stderr) };
}

function watch(children: readonly ChildProcess[], error: (text: string) => void, grace: number): Promise<End> {
  const failures: { rank: number; code: number | null; signal: NodeJS.Signals | null }[] = [];
  let running = children.length;
  let stopped: NodeJS.Signals | undefined;
  /** Returns the ranks that were still there. */
  const end = (signal: NodeJS.Signals): number[] =>
    children.flatMap((child, rank) => {
      if (child.exitCode !== null || child.signalCode !== null) return [];
      child.kill(signal);
      return [rank];
    });
  const kill = (why: string) => {
    const ranks = end("SIGKILL");
    if (ranks.length > 0) error(`opt-run: rank ${ranks.join(", ")} killed: ${why}\n`);
  };
  let isEnding = false;
  const endAll = (signal: NodeJS.Signals) => {
    isEnding = true;
    end(signal);
    setTimeout(() => kill(`not over ${grace} s after ${signal}; --grace gives more`), 1000 * grace).unref();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const stop = (signal: NodeJS.Signals) => {
    const isSecond = isEnding;
    stopped ??= signal;
    if (isSecond) kill(`a second ${signal}`);
    else endAll(signal);
  };
  for (const signal of signals) process.on(signal, stop);
  return new Promise((resolve) => {
    /** The rank that was killed, or else the first that failed: others miss it and fail, too. */
    let reason: (typeof failures)[number] | undefined;
    const fail = () => {
      reason = failures.find(({ signal }) => signal !== null) ?? failures[0]!;
      endAll("SIGTERM");
    };
    const over = () => {
      for (const each of signals) process.off(each, stop);
      if (stopped) return resolve({ code: codeOf(stopped) });
      if (reason === undefined) return resolve({ code: 0 });
      const { rank, code, signal } = reason;
      const how = signal === null ? `ended with exit code ${code}` : `was killed by ${signal}`;
      resolve({
        code: signal === null ? (code ?? 1) : codeOf(signal),
        failure: `rank ${rank} of ${children.length} ${how}`,
      });
    };
    for (const [rank, child] of children.entries()) {
      const gone = (code: number | null, signal: NodeJS.Signals | null) => {
        if (code !== 0 && failures.push({ rank, code, signal }) === 1) setTimeout(fail, SETTLE);
        if (--running === 0) setTimeout(over, failures.length > 0 ? SETTLE : 0);
      };
      child.on("exit", gone);
      child.on("error", (problem) => {
        error(`opt-run: rank ${rank} does not start: ${problem.message}\n`);
        if (child.pid === undefined) gone(1, null);
      });
    }
  });
}

/** What a shell says of a program that a signal ended. */
const codeOf = (signal: NodeJS.Signals) => 128 + constants.signals[signal];
