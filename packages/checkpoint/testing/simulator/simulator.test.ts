/** Every promise of a save, over many histories of ranks that die, disks that forget and messages that come late. */
import { triesAll } from "@opt/testkit";
import { expect, it } from "vitest";
import { runHistory } from "./history";
import { runSeeds } from "./seeds";

const HISTORIES = triesAll ? 1000 : 100;

it(`${HISTORIES} histories: the newest step is whole and of one life, and nobody is told a lie`, () =>
  runSeeds(1, HISTORIES));

it("a seed gives the same history each time", async () => {
  const log = async (seed: number) => (await runHistory(seed)).log;
  for (const seed of [1, 2, 3]) expect(await log(seed)).toEqual(await log(seed));
});
