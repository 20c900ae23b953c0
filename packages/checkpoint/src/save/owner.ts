/**
 * Which process makes a save, and whether it still runs. A process id alone does not tell: ids are given again. Together with when the
 * process started and which start of which kernel counts the ids, it does.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { threadId } from "node:worker_threads";

/** `<host>.<kernel>.<process id>.<start>.<thread>-<12 hexadecimal digits>`; letters, digits and `-` between the dots. */
export type Attempt = string;

const ATTEMPT = /^([A-Za-z0-9-]+\.([0-9a-f]{12})\.(\d+)\.(\d+))\.(\d+)-[0-9a-f]{12}$/;

let own: string | undefined;

function thisProcess(): string {
  own ??= `${hostname().replace(/[^A-Za-z0-9-]/g, "-")}.${kernel()}.${process.pid}.${startOf(process.pid) ?? 0}`;
  return own;
}

/** The attempts that this thread is at. Shared by every copy of this package in it. */
function atWork(): Set<Attempt> {
  const shared = globalThis as { [key: symbol]: Set<Attempt> | undefined };
  const key = Symbol.for("@opt/checkpoint.attempts");
  shared[key] ??= new Set();
  return shared[key];
}

/** Begins an attempt at a save, alive until `endAttempt`. */
export function newAttempt(): Attempt {
  const attempt = `${thisProcess()}.${threadId}-${randomBytes(6).toString("hex")}`;
  atWork().add(attempt);
  return attempt;
}

export function endAttempt(attempt: Attempt): void {
  atWork().delete(attempt);
}

/** `unknown`: another machine's, another container's, one of before a reboot, or no attempt's name. */
export function lifeOf(attempt: string): "alive" | "dead" | "unknown" {
  const [, owner, theirKernel, pid, start, thread] = ATTEMPT.exec(attempt) ?? [];
  if (owner === undefined) return "unknown";
  if (owner === thisProcess()) return Number(thread) !== threadId || atWork().has(attempt) ? "alive" : "dead";
  if (theirKernel !== kernel()) return "unknown";
  const started = startOf(Number(pid));
  if (started !== undefined) return `${started}` === start ? "alive" : "dead";
  return isRunning(Number(pid)) ? "alive" : "dead";
}

/** For messages: who makes an attempt. */
export function describeOwner(attempt: string): string {
  const [host, , pid] = attempt.split(".");
  return `process ${pid} on ${host}`;
}

/** Tells apart what counts process ids on its own: each boot of each machine, each container. */
function kernel(): string {
  known ??= identified();
  return known;
}

let known: string | undefined;

function identified(): string {
  const parts = [read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? hostname()];
  parts.push(read(() => readlinkSync("/proc/self/ns/pid")) ?? "");
  return createHash("sha256").update(parts.join()).digest("hex").slice(0, 12);
}

/** When a process started, in clock ticks since the boot; undefined where there is no such process, or the system does not say. */
function startOf(pid: number): number | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  // The second field is the program's name in brackets, which may hold anything.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has died, whether or not its parent has noticed.
  return fields === undefined || fields[0] === "Z" || fields[0] === "X" ? undefined : Number(fields[19]);
}

function isRunning(pid: number): boolean {
  if (process.platform === "linux") return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function read(body: () => string): string | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}
