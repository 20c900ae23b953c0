/** A run whose ranks are killed now and then is the run that never was. */
import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { localLauncher } from "../../../packages/parallel/testing/job";
import { killRanks } from "./kills";

it.skipIf(!existsSync("/proc/self/task"))("3 kills of opt-run's ranks", async () => {
  const { kills, runs } = await killRanks(
    3,
    localLauncher,
    (rank) => new RegExp(`rank ${rank} of 2 was killed by SIGKILL`),
  );
  expect([kills, runs]).toEqual([3, 1]);
});
