/**
 * All-reduces of 64 MiB and 1 KiB between 2 and 4 processes of this machine: ours over the embedded engine and over MPI, beside PyTorch's
 * gloo and Open MPI's own in C. `npx tsx --conditions=@opt/source tools/bench/ranks/all-reduce.ts`; gloo runs where OPT_TORCH_PYTHON
 * names a Python with PyTorch. Jobs are interleaved, and each is a job of its own.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mpich, openMpi } from "../../../packages/collectives-mpi/testing/launchers";
import type { JobOptions } from "../../../packages/parallel/testing/job";
import { median } from "../measure";
import { jobOf, overOpenMpi, slowest, source, type Time } from "./job";

/** Elements of float32, and how often each job adds them: the first times touch new memory, and do not count. */
const SIZES = [
  { elements: 16 << 20, repetitions: 8, first: 2 },
  { elements: 256, repetitions: 120, first: 20 },
] as const;
const RANKS = [2, 4];
const ROUNDS = 3;

interface Task {
  readonly ranks: number;
  readonly elements: number;
  readonly repetitions: number;
}

const OWN = `import { allReduceByEngine } from "${source("parallel/src/communicator/reduce.ts")}";`;
const ORDERED = "communicator.allReduce(x)";
const BY_ENGINE = 'allReduceByEngine(communicator.group, "allReduce", [x], "sum", { what: "sum" })';

const ours =
  (call: string, options: JobOptions = {}) =>
  async ({ ranks, elements, repetitions }: Task): Promise<Time[]> => {
    const body = `
      const x = core.ones([${elements}]);
      const times = [];
      for (let k = 0; k < ${repetitions}; k++) times.push(await timed(() => ${call}));
      tell(times);`;
    return slowest(await jobOf<Time[]>(ranks, body, OWN, options));
  };

const beside = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "opt-bench-"));
const program = join(scratch, "all-reduce");
const compiled = spawnSync("mpicc", ["-O3", "-o", program, beside("all_reduce.c")]);

/** The words of each line that a program prints. */
function linesOf(command: string, args: readonly string[]): number[][] {
  const { stdout } = spawnSync(command, args, { encoding: "utf8" });
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map(Number));
}

function inC({ ranks, elements, repetitions }: Task): Time[] {
  const { command, args } = openMpi.launcher(ranks, program);
  const options = args.filter((arg) => arg !== process.execPath);
  const lines = linesOf(command, [...options, String(elements), String(repetitions)]);
  return lines.map(([clock = Number.NaN]) => [clock, Number.NaN]);
}

const python = process.env.OPT_TORCH_PYTHON;
let stores = 0;

function gloo({ ranks, elements, repetitions }: Task): Time[] {
  const store = join(scratch, `store-${stores++}`);
  const lines = linesOf(python!, [beside("gloo.py"), ...[ranks, elements, repetitions].map(String), store]);
  const ofRank = (rank: number) => lines.filter(([of]) => of === rank).map(([, clock, own]) => [clock!, own!] as const);
  return slowest(Array.from({ length: ranks }, (_, rank) => ofRank(rank)));
}

const contenders: [name: string, missing: string | undefined, run: (task: Task) => Promise<Time[]> | Time[]][] = [
  ["PyTorch's gloo", python === undefined ? "OPT_TORCH_PYTHON is not set" : undefined, gloo],
  ["Open MPI's own, in C", compiled.status === 0 ? openMpi.missing : "no mpicc (Debian package libopenmpi-dev)", inC],
  ["ordered, opt-run", undefined, ours(ORDERED)],
  ["ordered, over Open MPI", openMpi.missing, ours(ORDERED, overOpenMpi)],
  ["ordered, over MPICH", mpich.missing, ours(ORDERED, { ...overOpenMpi, launcher: mpich.launcher })],
  [`reduction "engine", over Open MPI`, openMpi.missing, ours(BY_ENGINE, overOpenMpi)],
];

console.log("| ranks | KiB | | median ms | processor ms a rank | gloo's / this |");
console.log("|---:|---:|---|---:|---:|---:|");
for (const ranks of RANKS)
  for (const { elements, repetitions, first } of SIZES) {
    const times = contenders.map((): Time[] => []);
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, [, missing, run]] of contenders.entries())
        if (missing === undefined) times[i]!.push(...(await run({ ranks, elements, repetitions })).slice(first));
    const middle = (i: number, of: 0 | 1) => median(times[i]!.map((time) => time[of]));
    for (const [i, [name, missing]] of contenders.entries()) {
      const cells = [middle(i, 0), middle(i, 1), middle(0, 0) / middle(i, 0)];
      const shown = cells.map((value) => (Number.isNaN(value) ? "" : value.toFixed(2)));
      const row = missing === undefined ? shown.join(" | ") : `skipped: ${missing} | | `;
      console.log(`| ${ranks} | ${(4 * elements) / 1024} | ${name} | ${row} |`);
    }
  }
