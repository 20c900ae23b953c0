/**
 * A step of DataParallel with 20 M parameters on 2 ranks of this machine, beside its two halves: the same forward and backward without
 * communication, and the same buckets without those. `npx tsx --conditions=@opt/source tools/bench/ranks/data-parallel.ts`; the three take turns
 * within one job, and jobs do, too. The slower rank counts. A rank has one thread: its share of two cores.
 */
import { openMpi } from "../../../packages/collectives-mpi/testing/launchers";
import { median } from "../measure";
import { jobOf, overOpenMpi, slowest, source, type Time } from "./job";

const RANKS = 2;
/** Samples of each rank. */
const BATCHES = [64, 256, 512];
const ROUNDS = 4;
const PARTS = ["compute", "communication", "step"] as const;
const IMPORTS = `
import { DataParallel } from "${source("parallel/src/data-parallel/data-parallel.ts")}";
import { Linear, ReLU, Sequential } from "${source("nn/src/index.ts")}";`;

/** 20 layers of 1000 x 1000. */
const PROGRAM = `
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
  for (let round = 0; round <= ${ROUNDS}; round++)
    for (const [name, run] of Object.entries(parts)) {
      const time = await timed(run);
      if (round > 0) (result[batch + name] ??= []).push(time);
    }
}
tell(result);`;

const engines = [
  ["opt-run", undefined, {}],
  ["Open MPI", openMpi.missing, overOpenMpi],
] as const;
/** By engine, batch and part. */
const times = new Map<string, Time[]>();
for (let round = 0; round < 2; round++)
  for (const [engine, missing, options] of engines) {
    if (missing !== undefined) continue;
    const ranks = await jobOf<Record<string, Time[]>>(RANKS, PROGRAM, IMPORTS, options);
    for (const key of Object.keys(ranks[0]!)) {
      const measured = slowest(ranks.map((rank) => rank[key]!));
      times.set(engine + key, [...(times.get(engine + key) ?? []), ...measured]);
    }
  }

console.log(
  "| engine | batch | compute ms | communication ms | step ms | may be | step / larger | the same in processor time |",
);
console.log("|---|---:|---:|---:|---:|---:|---:|---:|");
for (const [engine, missing] of engines) {
  if (missing !== undefined) console.log(`| ${engine} | skipped: ${missing} |`);
  for (const batch of missing === undefined ? BATCHES : []) {
    const [clock, processor] = ([0, 1] as const).map((of) =>
      PARTS.map((part) => median(times.get(engine + batch + part)!.map((time) => time[of]))),
    ) as [number[], number[]];
    const ratioOf = ([compute, communication, step]: number[]) => step! / Math.max(compute!, communication!);
    const cells = [...clock, Math.max(clock[0]!, clock[1]!) * 1.2 + 1].map((time) => time.toFixed(0));
    const ratios = [ratioOf(clock), ratioOf(processor)].map((ratio) => ratio.toFixed(2));
    console.log(`| ${engine} | ${batch} | ${cells.join(" | ")} | ${ratios.join(" | ")} |`);
  }
}
