/** A simulator that finds nothing proves nothing: each planted fault must show. */
import { expect, it } from "vitest";
import { FAULTS } from "./faults";
import { runHistory } from "./history";

/** Most show within a hundred histories. */
const SEEDS = 10_000;

/** Of faults that take longer, a history that shows it: it is tried first. */
const SHOWN_BY: Readonly<Record<string, number>> = {
  "an overwrite moves its manifest first": 50,
  "a write that fails is taken for done": 105,
  "an overwrite removes the old manifest first": 191,
  "a folder in a bucket goes with what another save has put there": 630,
};

it.each(Object.entries(FAULTS))("finds that %s", async (name, plant) => {
  const shows = async (seed: number) => (await runHistory(seed, plant())).violation !== undefined;
  let seed = SHOWN_BY[name] ?? 1;
  if (!(await shows(seed))) for (seed = 1; seed <= SEEDS && !(await shows(seed)); ) seed++;
  expect(seed).toBeLessThanOrEqual(SEEDS);
});
