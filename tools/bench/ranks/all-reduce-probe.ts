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
import { IMPORTS, mpich, openMpi } from "../../../packages/collectives-mpi/src/testing/launchers";
import { type JobOptions, runJob } from "../../../packages/parallel/src/testing/job";

/** Elements of float32, and how often each job adds them: the first times touch new memory, and do not count. */
const SIZES = [
  { elements: 16 << 20, repetitions: 8, first: 2 },
  { elements: 256, repetitions: 200, first: 20 },
] as const;
const RANKS = [2, 4];
const ROUNDS = 1;

interface Task {
  readonly ranks: number;
  readonly elements: number;
  readonly repetitions: number;
}

/** Of each repetition the slowest rank's milliseconds, and its processor time; undefined where that is not measured. */
type Times = [milliseconds: number, processor: number | undefined][];

const source = (path: string) => fileURLToPath(new URL(`../../../packages/${path}`, import.meta.url));
const DEVICE = `import "${source("kernels-cpu/src/index.ts")}";\n`;
const OWN = `import { allReduceByEngine } from "${source("parallel/src/communicator/reduce.ts")}";\n`;

async function ours({ ranks, elements, repetitions }: Task, call: string, options: JobOptions): Promise<Times> {
  const body = `
    await core.init("cpu");
    const x = core.ones([${elements}]);
    const times = [];
    for (let k = 0; k < ${repetitions}; k++) {
      await communicator.barrier();
      const [begin, before] = [performance.now(), process.cpuUsage()];
      await ${call};
      const { user, system } = process.cpuUsage(before);
      times.push([performance.now() - begin, (user + system) / 1000]);
    }
    tell(times);`;
  const { told, error } = await runJob(ranks, body, { ...options, imports: DEVICE + OWN + (options.imports ?? "") });
  if (error !== "") throw new Error(error);
  return slowest(told as [number, number][][], repetitions);
}

function slowest(ranks: readonly (readonly [number, number])[][], repetitions: number): Times {
  const most = (k: number, of: 0 | 1) => Math.max(...ranks.map((times) => times[k]![of]));
  return Array.from({ length: repetitions }, (_, k) => [most(k, 0), most(k, 1)]);
}

const program = join(mkdtempSync(join(tmpdir(), "opt-bench-")), "all-reduce");
const compiled = spawnSync("mpicc", ["-O3", "-o", program, fileURLToPath(new URL("all_reduce.c", import.meta.url))]);

function inC({ ranks, elements, repetitions }: Task): Times {
  const { command, args } = openMpi.launcher(ranks, program);
  const options = args.filter((arg) => arg !== process.execPath);
  const { stdout } = spawnSync(command, [...options, String(elements), String(repetitions)], { encoding: "utf8" });
  return stdout
    .trim()
    .split("\n")
    .map((line) => [Number(line), undefined]);
}

const python = process.env.OPT_TORCH_PYTHON;
const script = fileURLToPath(new URL("gloo.py", import.meta.url));

function gloo({ ranks, elements, repetitions }: Task): Times {
  const file = join(mkdtempSync(join(tmpdir(), "opt-gloo-")), "store");
  const args = [script, ...[ranks, elements, repetitions].map(String), file];
  const { stdout } = spawnSync(python!, args, { encoding: "utf8" });
  const all: [number, number][][] = Array.from({ length: ranks }, () => []);
  for (const line of stdout.trim().split("\n")) {
    const [rank, milliseconds, processor] = line.split(" ").map(Number) as [number, number, number];
    all[rank]!.push([milliseconds, processor]);
  }
  return slowest(all, repetitions);
}

const ordered = "communicator.allReduce(x)";
const own = 'allReduceByEngine(communicator.group, "allReduce", [x], "sum", { what: "sum" })';
const overOpenMpi = { imports: IMPORTS, launcher: openMpi.launcher };
const contenders: [name: string, missing: string | undefined, run: (task: Task) => Promise<Times> | Times][] = [
  ["PyTorch's gloo", python === undefined ? "OPT_TORCH_PYTHON is not set" : undefined, gloo],
  ["Open MPI's own, in C", compiled.status === 0 ? openMpi.missing : "no mpicc (Debian package libopenmpi-dev)", inC],
  ["ordered, opt-run", undefined, (task) => ours(task, ordered, {})],
  ["ordered, over Open MPI", openMpi.missing, (task) => ours(task, ordered, overOpenMpi)],
  ["ordered, over MPICH", mpich.missing, (task) => ours(task, ordered, { imports: IMPORTS, launcher: mpich.launcher })],
  [`reduction "engine", over Open MPI`, openMpi.missing, (task) => ours(task, own, overOpenMpi)],
];

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;

console.log("| ranks | KiB | | median ms | processor ms a rank | gloo's / this |");
console.log("|---:|---:|---|---:|---:|---:|");
for (const ranks of RANKS)
  for (const { elements, repetitions, first } of SIZES) {
    const times = new Map<string, Times>();
    for (let round = 0; round < ROUNDS; round++)
      for (const [name, missing, run] of contenders) {
        if (missing !== undefined) continue;
        const measured = (await run({ ranks, elements, repetitions })).slice(first);
        times.set(name, [...(times.get(name) ?? []), ...measured]);
      }
    const middle = (name: string, of: 0 | 1) => median((times.get(name) ?? []).map((time) => time[of] ?? Number.NaN));
    const reference = middle(contenders[0]![0], 0);
    for (const [name, missing] of contenders) {
      const cells = missing === undefined ? [0, 1].map((of) => middle(name, of as 0 | 1)) : [];
      const shown = cells.map((value) => (Number.isNaN(value) ? "" : value.toFixed(2)));
      const ratio = cells.length > 0 && reference ? (reference / cells[0]!).toFixed(2) : "";
      const row = missing === undefined ? `${shown.join(" | ")} | ${ratio}` : `skipped: ${missing} | | `;
      console.log(`| ${ranks} | ${(4 * elements) / 1024} | ${name} | ${row} |`);
    }
  }
