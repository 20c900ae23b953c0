/** Every promise of a save, over a thousand histories of ranks that die, disks that forget and messages that come late. */
import { expect, it } from "vitest";
import { runHistory } from "./history";
import { runSeeds } from "./seeds";

it("1,000 histories: the newest step is whole and of one life, and nobody is told a lie", async () => {
  await runSeeds(1, 1000);
});

it("a seed gives the same history each time", async () => {
  // Names of saves hold random digits, which decide nothing.
  const plain = async (seed: number) => (await runHistory(seed)).log.map((line) => line.replace(/-[0-9a-f]{12}/g, ""));
  for (const seed of [1, 2, 3]) expect(await plain(seed)).toEqual(await plain(seed));
});
