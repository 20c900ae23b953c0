/**
 * A step of DataParallel on 2 ranks of this machine, beside its two halves: the same backward without communication, and the same buckets
 * without a backward. `npx tsx --conditions=@opt/source tools/bench/data-parallel.ts`; the three are interleaved in one job.
 */
import { fileURLToPath } from "node:url";
import { IMPORTS, openMpi } from "../../packages/collectives-mpi/src/testing/launchers";
import { type JobOptions, runJob } from "../../packages/parallel/src/testing/job";

const RANKS = 2;
/** Of each rank. */
const BATCHES = (process.env.BATCHES ?? "32,128,512").split(",").map(Number);
const ROUNDS = Number(process.env.ROUNDS ?? 15);
const source = (path: string) => fileURLToPath(new URL(`../../packages/${path}`, import.meta.url));
const OURS = `import "${source("kernels-cpu/src/index.ts")}";
import { DataParallel } from "${source("parallel/src/data-parallel/data-parallel.ts")}";
import { Linear, ReLU, Sequential } from "${source("nn/src/index.ts")}";\n`;

/** 20 M parameters: 20 layers of 1000 x 1000. */
const PROGRAM = `
await core.init("cpu");
const generator = new core.Generator(1);
const layers = Array.from({ length: 20 }, () => [new Linear(1000, 1000, { generator }), new ReLU()]).flat();
const model = new Sequential(...layers);
const parallel = new DataParallel(model, communicator, { reduction: REDUCTION });
await parallel.ready;
const result = {};
for (const batch of BATCHES) {
  const x = core.randn([batch, 1000], { generator: new core.Generator(communicator.rank) });
  const backward = () => core.tidy(() => model.forward(x).sum().backward());
  const measured = {
    compute: () => parallel.noSync(backward),
    communication: async () => { await parallel.sync(); },
    step: async () => { backward(); await parallel.sync(); },
  };
  const times = { compute: [], communication: [], step: [] };
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, run] of Object.entries(measured)) {
      await communicator.barrier();
      const begin = performance.now();
      await run();
      const time = performance.now() - begin;
      if (name !== "communication") for (const p of model.parameters()) p.grad.mul(0);
      if (round > 0) times[name].push(time);
      if (name === "communication") model.parameters().forEach((p) => { p.grad = null; });
      if (name === "step") model.parameters().forEach((p) => { p.grad = null; });
    }
  result[batch] = times;
}
tell(result);`;

type Times = Record<"compute" | "communication" | "step", number[]>;
const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function measure(name: string, reduction: string, options: JobOptions): Promise<void> {
  const body = PROGRAM.replace("REDUCTION", JSON.stringify(reduction))
    .replaceAll("ROUNDS", String(ROUNDS))
    .replace("BATCHES", JSON.stringify(BATCHES));
  const { told, error } = await runJob(RANKS, body, {
    patience: 300_000,
    ...options,
    imports: OURS + (options.imports ?? ""),
  });
  if (error !== "") throw new Error(error);
  for (const batch of BATCHES) {
    const ranks = told.map((each) => (each as Record<number, Times>)[batch]!);
    // The slower rank is the step's time.
    const slowest = (what: keyof Times) =>
      median(ranks[0]![what].map((_, i) => Math.max(...ranks.map((r) => r[what][i]!))));
    const [compute, communication, step] = [slowest("compute"), slowest("communication"), slowest("step")];
    const allowed = Math.max(compute, communication) * 1.2 + 1;
    const cells = [compute, communication, step, allowed].map((value) => value.toFixed(1));
    console.log(
      `| ${name} | ${batch} | ${cells.join(" | ")} | ${(step / Math.max(compute, communication)).toFixed(2)} |`,
    );
  }
}

console.log("| engine | batch of a rank | compute ms | communication ms | step ms | max x 1.2 + 1 | step / max |");
console.log("|---|---:|---:|---:|---:|---:|---:|");
await measure("opt-run", "ordered", {});
if (openMpi.missing === undefined)
  await measure("Open MPI", "ordered", { imports: IMPORTS, launcher: openMpi.launcher });
