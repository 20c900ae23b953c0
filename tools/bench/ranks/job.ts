/** What the benchmarks of ranks share: jobs of our packages from source, and their slowest rank. */
import { fileURLToPath } from "node:url";
import { IMPORTS, openMpi } from "../../../packages/collectives-mpi/testing/launchers";
import { type JobOptions, runJob } from "../../../packages/parallel/testing/job";

/** Milliseconds by the clock, and of processors. */
export type Time = readonly [clock: number, processor: number];

/** A source file of the packages, for the imports of a job. */
export const source = (path: string) => fileURLToPath(new URL(`../../../packages/${path}`, import.meta.url));

export const overOpenMpi: JobOptions = { imports: IMPORTS, launcher: openMpi.launcher };

/** What `tell` gave in each rank. In the job, `timed(run)` gives a `Time` that begins when all ranks are there. */
export async function jobOf<Told>(ranks: number, body: string, imports: string, options: JobOptions): Promise<Told[]> {
  const timed = `
    const timed = async (run) => {
      await communicator.barrier();
      const [begin, before] = [performance.now(), process.cpuUsage()];
      await run();
      const { user, system } = process.cpuUsage(before);
      return [performance.now() - begin, (user + system) / 1000];
    };`;
  const { told, error } = await runJob(ranks, `await core.init("cpu");\n${timed}\n${body}`, {
    patience: 300_000,
    ...options,
    imports: `import "${source("kernels-cpu/src/index.ts")}";\n${imports}\n${options.imports ?? ""}`,
  });
  if (error !== "") throw new Error(error);
  return told as Told[];
}

/** Of each repetition the slowest rank's. */
export const slowest = (ranks: readonly (readonly Time[])[]): Time[] =>
  ranks[0]!.map((_, i) => {
    const most = (of: 0 | 1) => Math.max(...ranks.map((times) => times[i]![of]));
    return [most(0), most(1)];
  });
