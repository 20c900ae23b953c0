/** A simulator that finds nothing proves nothing: each planted fault must show. */
import { expect, it } from "vitest";
import { FAULTS } from "./faults";
import { runHistory } from "./history";

/** Most show within a hundred histories. */
const SEEDS = 10_000;

it.each(Object.entries(FAULTS))("finds that %s", async (_, plant) => {
  let seed = 1;
  while (seed <= SEEDS && (await runHistory(seed, plant())).violation === undefined) seed++;
  expect(seed).toBeLessThanOrEqual(SEEDS);
});
