/** Every promise of a save, over a thousand histories of ranks that die, disks that forget and messages that come late. */
import { expect, it } from "vitest";
import { runHistory } from "./history";
import { runSeeds } from "./seeds";

it("1,000 histories: the newest step is whole and of one life, and nobody is told a lie", async () => {
  await runSeeds(1, 1000);
});

it("a seed gives the same history each time", async () => {
  const log = async (seed: number) => (await runHistory(seed)).log;
  for (const seed of [1, 2, 3]) expect(await log(seed)).toEqual(await log(seed));
});
