/** How many threads a rank takes, of how many cores. */
import { describe, expect, it } from "vitest";
import { runJob } from "../../parallel/testing/job";
import { IMPORTS, mpich } from "../testing/launchers";
import { threadsOf } from "./threads";

describe("threads of a rank on 8 cores", () => {
  it.each<[string, Record<string, string>, number, number | undefined]>([
    ["Open MPI, 2 ranks here", { OMPI_COMM_WORLD_LOCAL_SIZE: "2" }, 8, 4],
    ["Open MPI, bound to a core", { OMPI_COMM_WORLD_LOCAL_SIZE: "2" }, 1, undefined],
    ["Hydra, 3 ranks here", { MPI_LOCALNRANKS: "3" }, 8, 2],
    ["more ranks than cores", { MPI_LOCALNRANKS: "12" }, 8, 1],
    ["srun", { SLURM_NTASKS_PER_NODE: "4" }, 8, 2],
    ["a launcher that does not say", {}, 8, undefined],
    ["the user's number", { OMPI_COMM_WORLD_LOCAL_SIZE: "2", OPT_NUM_THREADS: "8" }, 8, undefined],
  ])("%s", (_, variables, bound, expected) => {
    expect(threadsOf((name) => variables[name], bound, 8)).toBe(expected);
  });

  it.skipIf(mpich.missing)(`are told to devices${mpich.missing ?? ""}`, async () => {
    const body = `const { availableParallelism, cpus } = await import("node:os");
      tell([process.env.OPT_NUM_THREADS, String(Math.max(1, Math.floor(cpus().length / 2))), availableParallelism() < cpus().length]);`;
    const { told } = await runJob(2, body, { imports: IMPORTS, launcher: mpich.launcher });
    for (const [threads, expected, isBound] of told as [string, string, boolean][])
      expect(threads).toBe(isBound ? undefined : expected);
  });
});
