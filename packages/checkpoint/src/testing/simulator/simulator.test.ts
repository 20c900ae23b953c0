/** Every promise of a save, over a thousand histories of ranks that die, disks that forget and messages that come late. */
import { expect, it } from "vitest";
import { type History, runHistory } from "./history";

function told({ seed, violation, log }: History): string {
  return `seed ${seed}: ${violation}\n${log.slice(-400).join("\n")}`;
}

it("1,000 histories: the newest step is whole and of one life, and nobody is told a lie", async () => {
  const first = Number(process.env.OPT_SEED ?? 1);
  const count = Number(process.env.OPT_SEEDS ?? 1000);
  let events = 0;
  for (let seed = first; seed < first + count; seed++) {
    const history = await runHistory(seed);
    expect(history.violation, told(history)).toBeUndefined();
    events += history.events;
  }
  console.log(`${events} events`);
});

it("a seed gives the same history each time", async () => {
  const plain = async (seed: number) => (await runHistory(seed)).log.map((line) => line.replace(/-[0-9a-f]{12}/g, ""));
  for (const seed of [1, 2, 3]) expect(await plain(seed)).toEqual(await plain(seed));
});
