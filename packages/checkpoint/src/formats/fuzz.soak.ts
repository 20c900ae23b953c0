import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type FuzzSeed, fuzz, madeSeeds, seedsIn } from "../../testing/fuzz";

const SAMPLES = join(fileURLToPath(new URL("../../../../..", import.meta.url)), "shared/samples");
const MINUTE = 60_000;

// Every run begins elsewhere; the seed is in the message of a failure.
const start = Date.now() >>> 0;

async function minuteOf(seeds: readonly FuzzSeed[]): Promise<void> {
  const end = performance.now() + MINUTE;
  const { count, rejected, slowest } = await fuzz(seeds, start, () => performance.now() >= end);
  console.log(`${seeds[0]!.name}: ${count} runs, ${rejected} rejected, slowest ${slowest.toFixed(0)} ms`);
  expect(rejected).toBeGreaterThan(count / 20);
  expect(slowest).toBeLessThan(5000);
}

describe("damaged checkpoints made here, a minute each", async () => {
  it.each(await madeSeeds())("$name", (seed) => minuteOf([seed]));
});

const present = existsSync(SAMPLES);
const groups = new Map<string, FuzzSeed[]>();
for (const seed of present ? seedsIn(SAMPLES) : []) {
  const group = seed.name.split("/")[0]!;
  groups.set(group, [...(groups.get(group) ?? []), seed]);
}
describe.skipIf(!present)(`damaged samples, a minute each${present ? "" : " (../shared/samples is not here)"}`, () => {
  it.each([...groups])("%s", (_, seeds) => minuteOf(seeds));
});
