/** 50 kills at random moments, of the ranks of every launcher. */
import { it } from "vitest";
import { mpich, openMpi } from "../../../packages/collectives-mpi/testing/launchers";
import { localLauncher } from "../../../packages/parallel/testing/job";
import { killRanks } from "./kills";

it("opt-run", async () => {
  console.log(
    "opt-run",
    await killRanks(50, localLauncher, (rank) => new RegExp(`rank ${rank} of 2 was killed by SIGKILL`)),
  );
});

it.skipIf(openMpi.missing)(`Open MPI${openMpi.missing ?? ""}`, async () => {
  const says = (rank: number) => new RegExp(`process rank ${rank} .* exited on signal 9`);
  console.log("Open MPI", await killRanks(50, openMpi.launcher, says));
});

it.skipIf(mpich.missing)(`MPICH${mpich.missing ?? ""}`, async () => {
  const says = (rank: number) => new RegExp(`rank ${rank} of 2, process \\d+, is gone`);
  console.log("MPICH", await killRanks(50, mpich.launcher, says));
});
