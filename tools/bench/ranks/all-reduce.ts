/**
 * An all-reduce of 64 MiB between 2 processes of this machine: ours over MPI and over the embedded engine, beside Open MPI's own in C.
 * `npx tsx --conditions=@opt/source tools/bench/ranks/all-reduce.ts`; jobs are interleaved, and each is a job of its own.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { IMPORTS, mpich, openMpi } from "../../../packages/collectives-mpi/src/testing/launchers";
import { type JobOptions, runJob } from "../../../packages/parallel/src/testing/job";

const RANKS = 2;
const ELEMENTS = 16 << 20;
const REPETITIONS = 8;
const ROUNDS = 5;

const source = (path: string) => fileURLToPath(new URL(`../../../packages/${path}`, import.meta.url));
const DEVICE = `import "${source("kernels-cpu/src/index.ts")}";\n`;
const OWN = `import { allReduceByEngine } from "${source("parallel/src/communicator/reduce.ts")}";\n`;

async function ours(call: string, options: JobOptions): Promise<number[]> {
  const body = `
    await core.init("cpu");
    const x = core.ones([${ELEMENTS}]);
    const times = [];
    for (let k = 0; k < ${REPETITIONS}; k++) {
      await communicator.barrier();
      const begin = performance.now();
      await ${call};
      times.push(performance.now() - begin);
    }
    tell(times);`;
  const { told, error } = await runJob(RANKS, body, { ...options, imports: DEVICE + OWN + (options.imports ?? "") });
  if (error !== "") throw new Error(error);
  return Array.from({ length: REPETITIONS }, (_, k) => Math.max(...(told as number[][]).map((times) => times[k]!)));
}

const program = join(mkdtempSync(join(tmpdir(), "opt-bench-")), "all-reduce");
const compiled = spawnSync("mpicc", ["-O3", "-o", program, fileURLToPath(new URL("all_reduce.c", import.meta.url))]);

function inC(): number[] {
  const { command, args } = openMpi.launcher(RANKS, program);
  const options = args.filter((arg) => arg !== process.execPath);
  const { stdout } = spawnSync(command, [...options, String(ELEMENTS), String(REPETITIONS)], { encoding: "utf8" });
  return stdout.trim().split("\n").map(Number);
}

const ordered = "communicator.allReduce(x)";
const own = 'allReduceByEngine(communicator.group, "allReduce", [x], "sum", { what: "sum" })';
const overOpenMpi = { imports: IMPORTS, launcher: openMpi.launcher };
const contenders: [name: string, missing: string | undefined, run: () => Promise<number[]> | number[]][] = [
  ["Open MPI's own, in C", compiled.status === 0 ? openMpi.missing : "no mpicc (Debian package libopenmpi-dev)", inC],
  ["ordered, over Open MPI", openMpi.missing, () => ours(ordered, overOpenMpi)],
  ["ordered, over MPICH", mpich.missing, () => ours(ordered, { imports: IMPORTS, launcher: mpich.launcher })],
  ["ordered, embedded", undefined, () => ours(ordered, {})],
  [`reduction "engine", over Open MPI`, openMpi.missing, () => ours(own, overOpenMpi)],
];

const times = new Map<string, number[]>();
for (let round = 0; round < ROUNDS; round++)
  for (const [name, missing, run] of contenders) {
    if (missing !== undefined) continue;
    // The first touches new memory.
    const [, ...measured] = await run();
    times.set(name, [...(times.get(name) ?? []), ...measured]);
  }

const quantile = (values: number[], part: number) =>
  values.sort((a, b) => a - b)[Math.floor(part * (values.length - 1))]!;
console.log(
  `| all-reduce of ${(4 * ELEMENTS) >> 20} MiB, ${RANKS} processes | median ms | best tenth | Open MPI's / this, medians |`,
);
console.log("|---|---:|---:|---:|");
const reference = times.get(contenders[0]![0]);
for (const [name, missing] of contenders) {
  const values = times.get(name);
  if (values === undefined) console.log(`| ${name} | skipped: ${missing} | | |`);
  else {
    const ratio = reference ? (quantile(reference, 0.5) / quantile(values, 0.5)).toFixed(2) : "";
    console.log(`| ${name} | ${quantile(values, 0.5).toFixed(1)} | ${quantile(values, 0.1).toFixed(1)} | ${ratio} |`);
  }
}
