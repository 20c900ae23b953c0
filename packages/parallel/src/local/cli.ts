#!/usr/bin/env node
/** `npx opt-run -n 4 train.js`: a program as several ranks on this machine. */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { GRACE, type Launch, launch, tooMany } from "./launcher";

const USAGE = `Usage: opt-run -n <ranks> [--restarts <times>] [--grace <seconds>s] [options of node] <program> [arguments]

Starts the program once for each rank, as processes of this machine; connect() of @opt/parallel
tells them apart. When one fails, all end, and the exit code is its own (128 + its number for a
signal). With --restarts the job then begins again: the program loads its newest checkpoint.
Ranks that are asked to end have 30 s for it, or what --grace says. A second SIGTERM ends them at once.
`;

/** Each has a socket to every other one. */
const MOST_RANKS = 256;
const MOST_RESTARTS = 1_000_000;
const MOST_SECONDS = 86_400;

/** Every rank would say so. What comes behind options of node may be theirs. */
function isThere(program: string): boolean {
  if (program.startsWith("-")) return true;
  try {
    createRequire(import.meta.url).resolve(resolve(program));
    return true;
  } catch {
    return false;
  }
}

/** What node says of a program that it cannot read; every rank would say it. */
function syntaxErrorOf(program: string): string | undefined {
  if (!/\.[cm]?js$/.test(program)) return undefined;
  const { status, stderr } = spawnSync(process.execPath, ["--check", program], { encoding: "utf8" });
  return status === 0 ? undefined : stderr;
}

interface Count {
  readonly least: number;
  readonly most: number;
  /** May stand behind the number. */
  readonly unit?: string;
}

const COUNTS: Readonly<Record<string, Count>> = {
  "-n": { least: 1, most: MOST_RANKS },
  "--restarts": { least: 0, most: MOST_RESTARTS },
  "--grace": { least: 0, most: MOST_SECONDS, unit: "s" },
};

/** Options in front of the program, or what is wrong with them. */
function parse(args: readonly string[]): Omit<Launch, "error"> | string {
  const counts = new Map([
    ["--restarts", 0],
    ["--grace", GRACE],
  ]);
  let at = 0;
  for (; args[at]! in COUNTS; at += 2) {
    const [name, text = ""] = args.slice(at, at + 2) as [string, string?];
    const { least, most, unit = "" } = COUNTS[name]!;
    const digits = unit !== "" && text.endsWith(unit) ? text.slice(0, -unit.length) : text;
    const isCount = /^\d+$/.test(digits) && Number(digits) >= least && Number(digits) <= most;
    if (!isCount) return `${name} must be a whole number, ${least} to ${most}, got ${text || "nothing"}`;
    counts.set(name, Number(digits));
  }
  const size = counts.get("-n");
  const [program] = args.slice(at);
  if (size === undefined) return `the first argument must be -n, got ${program ?? "nothing"}`;
  if (program === undefined) return "there is no program";
  if (!isThere(program)) return `there is no file ${program}`;
  const limit = tooMany(size);
  if (limit !== undefined) return limit;
  return { size, restarts: counts.get("--restarts")!, grace: counts.get("--grace")!, args: args.slice(at) };
}

const given = process.argv.slice(2);
if (given[0] === "--help" || given[0] === "-h") process.stdout.write(USAGE);
else {
  const windows = "ranks need memory that outlives its name, which Windows does not have; MPI serves there";
  const job = process.platform === "win32" ? windows : parse(given);
  const syntaxError = typeof job === "string" ? undefined : syntaxErrorOf(job.args[0]!);
  if (typeof job === "string") {
    process.stderr.write(`opt-run: ${job}.\n\n${USAGE}`);
    process.exitCode = 2;
  } else if (syntaxError !== undefined) {
    process.stderr.write(syntaxError);
    process.exitCode = 1;
  } else process.exitCode = await launch({ ...job, error: (text) => process.stderr.write(text) });
}
