/**
 * A step of DataParallel with 20 M parameters on 2 ranks of this machine, beside its two halves: the same forward and backward without
 * communication, and the same buckets without those. `npx tsx --conditions=@opt/source tools/bench/ranks/data-parallel.ts`; the three take turns
 * within one job, and jobs do, too. The slower rank counts. A rank has one thread: its share of two cores.
 */
import { fileURLToPath } from "node:url";
import { IMPORTS, openMpi } from "../../../packages/collectives-mpi/src/testing/launchers";
import { type JobOptions, runJob } from "../../../packages/parallel/src/testing/job";

const RANKS = 2;
/** Samples of each rank. */
const BATCHES = [64, 256, 512];
const ROUNDS = 4;
const source = (path: string) => fileURLToPath(new URL(`../../../packages/${path}`, import.meta.url));
const OURS = `import "${source("kernels-cpu/src/index.ts")}";
import { DataParallel } from "${source("parallel/src/data-parallel/data-parallel.ts")}";
import { Linear, ReLU, Sequential } from "${source("nn/src/index.ts")}";\n`;

/** 20 layers of 1000 x 1000. */
const PROGRAM = `
await core.init("cpu");
const generator = new core.Generator(1);
const layers = Array.from({ length: 20 }, () => [new Linear(1000, 1000, { generator }), new ReLU()]).flat();
const model = new Sequential(...layers);
const parallel = new DataParallel(model, communicator);
await parallel.ready;
const forget = () => { for (const w of model.parameters()) w.grad = null; };
const result = {};
for (const batch of ${JSON.stringify(BATCHES)}) {
  const x = core.randn([batch, 1000], { generator: new core.Generator(communicator.rank) });
  const backward = () => core.tidy(() => model.forward(x).sum().backward());
  const parts = {
    compute: () => parallel.noSync(backward),
    communication: () => parallel.sync(), // of the gradients that compute left
    step: async () => { forget(); backward(); await parallel.sync(); forget(); },
  };
  const times = { compute: [], communication: [], step: [] };
  for (let round = 0; round <= ${ROUNDS}; round++)
    for (const [name, run] of Object.entries(parts)) {
      await communicator.barrier();
      const [begin, before] = [performance.now(), process.cpuUsage()];
      await run();
      const { user, system } = process.cpuUsage(before);
      if (round > 0) times[name].push([performance.now() - begin, (user + system) / 1000]);
    }
  result[batch] = times;
}
tell(result);`;

const PARTS = ["compute", "communication", "step"] as const;
/** Milliseconds by the clock, and of processors. */
type Times = Record<(typeof PARTS)[number], [number, number][]>;

async function measure(options: JobOptions): Promise<Record<number, Times>> {
  const { told, error } = await runJob(RANKS, PROGRAM, {
    patience: 300_000,
    ...options,
    imports: OURS + (options.imports ?? ""),
  });
  if (error !== "") throw new Error(error);
  const [first, ...others] = told as [Record<number, Times>, ...Record<number, Times>[]];
  for (const batch of BATCHES)
    for (const part of PARTS)
      first[batch]![part] = first[batch]![part].map(
        (time, i) =>
          [0, 1].map((k) => Math.max(time[k]!, ...others.map((each) => each[batch]![part][i]![k]!))) as [
            number,
            number,
          ],
      );
  return first;
}

const median = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1]!;
const engines: [name: string, missing: string | undefined, options: JobOptions][] = [
  ["opt-run", undefined, {}],
  ["Open MPI", openMpi.missing, { imports: IMPORTS, launcher: openMpi.launcher }],
];
const all = new Map<string, Record<number, Times>[]>();
for (let round = 0; round < 2; round++)
  for (const [name, missing, options] of engines)
    if (missing === undefined) all.set(name, [...(all.get(name) ?? []), await measure(options)]);

console.log(
  "| engine | batch | compute ms | communication ms | step ms | may be | step / larger | the same in processor time |",
);
console.log("|---|---:|---:|---:|---:|---:|---:|---:|");
for (const [name, missing] of engines) {
  if (missing !== undefined) console.log(`| ${name} | skipped: ${missing} |`);
  for (const batch of all.has(name) ? BATCHES : []) {
    const of = (part: (typeof PARTS)[number], k: 0 | 1) =>
      median(all.get(name)!.flatMap((times) => times[batch]![part].map((time) => time[k])));
    const [compute, communication, step] = PARTS.map((part) => of(part, 0)) as [number, number, number];
    const [x, y, z] = PARTS.map((part) => of(part, 1)) as [number, number, number];
    const cells = [compute, communication, step, Math.max(compute, communication) * 1.2 + 1].map((t) => t.toFixed(0));
    const ratios = [step / Math.max(compute, communication), z / Math.max(x, y)].map((ratio) => ratio.toFixed(2));
    console.log(`| ${name} | ${batch} | ${cells.join(" | ")} | ${ratios.join(" | ")} |`);
  }
}
