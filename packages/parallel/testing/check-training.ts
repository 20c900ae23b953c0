/** What every engine's ranks must hold after training: the bits of one process that takes the same batches. */
import { createHash } from "node:crypto";
import { expect } from "vitest";
import { type JobOptions, runJob } from "./job";
import { memoryRanks } from "./memory-ranks";
import { type Run, trainAlone, trainOnRanks } from "./training";

/** @param options how the job is started; its imports bring `trainOnRanks` */
export async function checkTraining(ranks: number, runs: readonly Run[], options: JobOptions): Promise<void> {
  // Digests, one of each run: long lines of ranks come in pieces, one among another's.
  const body = `const { createHash } = await import("node:crypto");
    const digests = [];
    for (const run of ${JSON.stringify(runs)})
      digests.push(createHash("sha256").update(JSON.stringify(await trainOnRanks(run, communicator))).digest("hex"));
    tell(digests);`;
  const { told, error } = await runJob(ranks, body, options);
  expect(error).toBe("");
  const alone: string[] = [];
  for (const run of runs) {
    alone.push(
      createHash("sha256")
        .update(JSON.stringify(await trainAlone(run, ranks)))
        .digest("hex"),
    );
  }
  expect(told).toEqual(new Array(ranks).fill(alone));
}

/** The same among ranks of this process, which share its default device. */
export async function checkTrainingInMemory(ranks: number, run: Run): Promise<void> {
  const all = await Promise.all(memoryRanks(ranks).map((communicator) => trainOnRanks(run, communicator)));
  expect(all).toEqual(new Array(ranks).fill(await trainAlone(run, ranks)));
}
