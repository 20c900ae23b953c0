#!/usr/bin/env node
/** `npx opt-run -n 4 train.js`: a program as several ranks on this machine. */
import { launch } from "./launcher";

const USAGE = `Usage: opt-run -n <ranks> [options of node] <program> [arguments]

Starts the program once for each rank, as processes of this machine; connect() of @opt/parallel
tells them apart. When one fails, all end, and the exit code is its own.
`;

/** A socket between any two, each a file descriptor in both. */
const MOST_RANKS = 256;

const [flag, count, ...args] = process.argv.slice(2);
if (flag === "--help" || flag === "-h") process.stdout.write(USAGE);
else {
  const size = Number(count);
  const isCount = Number.isInteger(size) && size >= 1 && size <= MOST_RANKS;
  const problem =
    process.platform === "win32"
      ? "ranks need memory that outlives its name, which Windows does not have; MPI serves there"
      : flag !== "-n"
        ? `the first argument must be -n, got ${flag ?? "nothing"}`
        : !isCount
          ? `-n must be 1 to ${MOST_RANKS}, got ${count ?? "nothing"}`
          : args.length === 0
            ? "there is no program"
            : undefined;
  if (problem === undefined) {
    process.exitCode = await launch({ size, args, error: (text) => process.stderr.write(text) });
  } else {
    process.stderr.write(`opt-run: ${problem}.\n\n${USAGE}`);
    process.exitCode = 2;
  }
}
