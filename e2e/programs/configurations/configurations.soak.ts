/** Random training runs until someone stops it, or OPT_CONFIGURATIONS of them; every run begins elsewhere. */
import { expect, it } from "vitest";
import { campaign, drawnOn } from "./campaign";

const { OPT_CONFIGURATIONS, OPT_CONFIGURATIONS_FIRST, OPT_CONFIGURATIONS_DEVICES = "js,wasm,cpu" } = process.env;
const count = Number(OPT_CONFIGURATIONS ?? Number.POSITIVE_INFINITY);
const first = Number(OPT_CONFIGURATIONS_FIRST ?? Date.now() % 2 ** 31);
const AT_ONCE = 200;

it(`${count} configurations on ${OPT_CONFIGURATIONS_DEVICES}, from seed ${first}`, { timeout: 0 }, async () => {
  const drawn = await drawnOn(OPT_CONFIGURATIONS_DEVICES.split(","));
  const faults: string[] = [];
  const begun = performance.now();
  for (let done = 0; done < count; done += AT_ONCE) {
    const seeds = Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, i) => first + done + i);
    const found = await campaign(seeds, drawn);
    for (const fault of found) console.log(fault);
    faults.push(...found);
    console.log(
      `${done + seeds.length} configurations, ${faults.length} faults, ${Math.round((performance.now() - begun) / 1000)} s`,
    );
  }
  expect(faults).toEqual([]);
});
