/** Which process makes a save, and whether it still runs: process ids are given again, so its start and kernel count too. */
import { platform } from "#platform";
import { hex } from "../../stores/hex";

/** `<host>.<kernel>.<process id>.<start>.<thread>-<12 hexadecimal digits>`; letters, digits and `-` between the dots. */
export type Attempt = string;

const ATTEMPT = /^([A-Za-z0-9-]+\.([0-9a-f]{12})\.(\d+)\.(\d+))\.(\d+)-[0-9a-f]{12}$/;

/** The attempts that this thread is at. Shared by every copy of this package in it. */
function atWork(): Set<Attempt> {
  const shared = globalThis as { [key: symbol]: Set<Attempt> | undefined };
  const key = Symbol.for("@opt/checkpoint.attempts");
  shared[key] ??= new Set();
  return shared[key];
}

/** Begins an attempt at a save, alive until `endAttempt`. */
export function newAttempt(): Attempt {
  const digits = hex(crypto.getRandomValues(new Uint8Array(6)));
  const attempt = `${platform.thisProcess()}.${platform.threadId}-${digits}`;
  atWork().add(attempt);
  return attempt;
}

export function endAttempt(attempt: Attempt): void {
  atWork().delete(attempt);
}

/** `unknown`: another machine's, another container's, one of before a reboot, or no attempt's name. */
export function lifeOf(attempt: string): "alive" | "dead" | "unknown" {
  const [, owner, kernel, pid, start, thread] = ATTEMPT.exec(attempt) ?? [];
  if (owner === undefined) return "unknown";
  if (owner === platform.thisProcess())
    return Number(thread) !== platform.threadId || atWork().has(attempt) ? "alive" : "dead";
  return platform.processLife(kernel!, Number(pid), start!);
}

/** What the names of an attempt's files end with, where those of others may lie beside them. */
export function fileTagOf(attempt: Attempt): string {
  return attempt.slice(-12);
}
