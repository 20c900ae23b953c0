#!/usr/bin/env node
/** `npx opt-run -n 4 train.js`: a program as several ranks on this machine. */
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { launch } from "./launcher";

const USAGE = `Usage: opt-run -n <ranks> [options of node] <program> [arguments]

Starts the program once for each rank, as processes of this machine; connect() of @opt/parallel
tells them apart. When one fails, all end, and the exit code is its own.
`;

/** A socket between any two, each a file descriptor in both. */
const MOST_RANKS = 256;

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

const [flag, count, ...args] = process.argv.slice(2);
if (flag === "--help" || flag === "-h") process.stdout.write(USAGE);
else {
  const size = Number(count);
  const isCount = /^\d+$/.test(count ?? "") && size >= 1 && size <= MOST_RANKS;
  const [program] = args;
  const problem =
    process.platform === "win32"
      ? "ranks need memory that outlives its name, which Windows does not have; MPI serves there"
      : flag !== "-n"
        ? `the first argument must be -n, got ${flag ?? "nothing"}`
        : !isCount
          ? `-n must be a whole number, 1 to ${MOST_RANKS}, got ${count ?? "nothing"}`
          : program === undefined
            ? "there is no program"
            : !isThere(program)
              ? `there is no file ${program}`
              : undefined;
  if (problem === undefined) {
    process.exitCode = await launch({ size, args, error: (text) => process.stderr.write(text) });
  } else {
    process.stderr.write(`opt-run: ${problem}.\n\n${USAGE}`);
    process.exitCode = 2;
  }
}
