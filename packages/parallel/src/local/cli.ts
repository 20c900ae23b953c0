#!/usr/bin/env node
/** `npx opt-run -n 4 train.js`: a program as several ranks on this machine. */
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { launchHosts } from "../hosts/launch-hosts";
import { findLauncher, type Host, ranksOf } from "../hosts/mpi-launcher";
import { proveResume } from "../prove/prove";
import { GRACE, type Launch, launch, tooMany } from "./launcher";

const USAGE = `Usage: opt-run -n <ranks> [options] [options of node] <program> [arguments]
       opt-run --hosts <host>:<ranks>,... [options] [options of node] <program> [arguments]
       opt-run --prove-resume <step>,... [-n <ranks>] [options] [options of node] <program> [arguments]

Starts the program once for each rank; connect() of @opt/parallel tells them apart. With -n they
are processes of this machine, with --hosts those of several: srun, mpirun or mpiexec starts them,
and @opt/collectives-mpi connects them. When one fails, all end, and the exit code is its own (128
+ its number for a signal), 2 for wrong usage. Each line that a rank writes begins with its number.

  --restarts <times>    begin again after a failure: the program loads its newest checkpoint
  --min-ranks <ranks>   begin again on the hosts that are left, with so many ranks at least
  --grace <seconds>s    ranks that are asked to end have 30 s for it, or so many. A second SIGTERM
                        ends them at once
  --no-prefix           lines as the ranks write them
  --version             print the version
  --prove-resume <step>,...
                        run the program whole, then broken after these steps and resumed, each part
                        in new processes. Exit 1 names what differs first, and its usual cause. The
                        program saves and resumes in process.env.OPT_RUN_FOLDER. It trains with fit
                        of @opt/train, or records its steps by recordedRun of @opt/checkpoint
`;

const NO_LAUNCHER =
  "--hosts needs a launcher of MPI, and there is no srun, mpirun or mpiexec. Install one on each host: apt install openmpi-bin, dnf install openmpi or brew install open-mpi";

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
  "--min-ranks": { least: 1, most: MOST_RESTARTS },
  "--grace": { least: 0, most: MOST_SECONDS, unit: "s" },
};

function countOf(name: string, text: string): number | string {
  const { least, most, unit = "" } = COUNTS[name]!;
  const digits = unit !== "" && text.endsWith(unit) ? text.slice(0, -unit.length) : text;
  const isCount = /^\d+$/.test(digits) && Number(digits) >= least && Number(digits) <= most;
  return isCount ? Number(digits) : `${name} must be a whole number, ${least} to ${most}, got ${text || "nothing"}`;
}

/** Of `a:4,b`. */
function hostsOf(text: string): readonly Host[] | string {
  const hosts = text.split(",").map((each): Host => {
    const [, name = "", slots = "1"] = /^([\w.-]+)(?::(\d+))?$/.exec(each) ?? [];
    return { name, slots: Number(slots) };
  });
  const isRight = hosts.every(({ name, slots }) => /^\w/.test(name) && slots > 0);
  return isRight ? hosts : `--hosts must be like a:4,b:4, got ${text || "nothing"}`;
}

/** Of `10,20`. */
function breaksOf(text: string): readonly number[] | string {
  const breaks = text.split(",").map((each) => (/^\d{1,15}$/.test(each) ? Number(each) : 0));
  const areAscending = breaks.every((step, i) => step > (breaks[i - 1] ?? 0));
  return areAscending ? breaks : `--prove-resume must be ascending steps like 10,20, got ${text || "nothing"}`;
}

type Job = Pick<Required<Launch>, "args" | "restarts" | "grace" | "isPlain"> &
  (
    | { readonly size: number; readonly breaks?: readonly number[] }
    | { readonly hosts: readonly Host[]; readonly minRanks: number }
  );

/** Options in front of the program, or what is wrong with them. */
function parse(args: readonly string[]): Job | string {
  const counts = new Map([
    ["--restarts", 0],
    ["--grace", GRACE],
  ]);
  let hosts: readonly Host[] | undefined;
  let breaks: readonly number[] | undefined;
  let isPlain = false;
  let at = 0;
  const others = ["--hosts", "--no-prefix", "--prove-resume"];
  for (let name = args[at]!; name in COUNTS || others.includes(name); name = args[at]!) {
    const text = args[at + 1] ?? "";
    at += name === "--no-prefix" ? 1 : 2;
    if (name === "--no-prefix") isPlain = true;
    else {
      const given =
        name === "--hosts" ? hostsOf(text) : name === "--prove-resume" ? breaksOf(text) : countOf(name, text);
      if (typeof given === "string") return given;
      if (typeof given === "number") counts.set(name, given);
      else if (name === "--hosts") hosts = given as readonly Host[];
      else breaks = given as readonly number[];
    }
  }
  const [size, minRanks] = [counts.get("-n") ?? (breaks && 1), counts.get("--min-ranks")];
  const [program] = args.slice(at);
  if (breaks && (hosts || counts.get("--restarts"))) return "--prove-resume goes without --hosts and --restarts";
  if ((size === undefined) === (hosts === undefined))
    return size === undefined
      ? `the first argument must be -n or --hosts, got ${program ?? "nothing"}`
      : "-n goes without --hosts";
  if (minRanks !== undefined && hosts === undefined) return "--min-ranks goes with --hosts";
  if (program === undefined) return "there is no program";
  if (!isThere(program)) return `there is no file ${program}`;
  const job = { restarts: counts.get("--restarts")!, grace: counts.get("--grace")!, args: args.slice(at), isPlain };
  if (hosts) return { ...job, hosts, minRanks: minRanks ?? ranksOf(hosts) };
  return tooMany(size!) ?? { ...job, size: size!, ...(breaks && { breaks, isPlain: isPlain || size === 1 }) };
}

/** Runs a job that was read. */
function run(job: Job): Promise<number> | string {
  const error = (text: string) => void process.stderr.write(text);
  if ("size" in job) {
    const windows = "ranks need memory that outlives its name, which Windows does not have; MPI serves there";
    if (process.platform === "win32") return windows;
    return job.breaks ? proveResume({ ...job, breaks: job.breaks, error }) : launch({ ...job, error });
  }
  const launcher = findLauncher();
  return launcher ? launchHosts({ ...job, launcher, error }) : NO_LAUNCHER;
}

const given = process.argv.slice(2);
if (given.length === 0 || given[0] === "--help" || given[0] === "-h") process.stdout.write(USAGE);
else if (given[0] === "--version") {
  // By the package's own name: from source, as built and in a bundle the way to the file differs.
  const { version } = createRequire(import.meta.url)("@opt/parallel/package.json");
  process.stdout.write(`${version}\n`);
} else {
  const job = parse(given);
  const syntaxError = typeof job === "string" ? undefined : syntaxErrorOf(job.args[0]!);
  const running = typeof job === "string" || syntaxError !== undefined ? undefined : run(job);
  const problem = typeof job === "string" ? job : running;
  if (syntaxError !== undefined) {
    process.stderr.write(syntaxError);
    process.exitCode = 1;
  } else if (typeof problem === "string") {
    process.stderr.write(`opt-run: ${problem}. See opt-run --help.\n`);
    process.exitCode = 2;
  } else process.exitCode = await problem!;
}
