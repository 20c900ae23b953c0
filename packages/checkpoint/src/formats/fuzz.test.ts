import { describe, expect, it } from "vitest";
import { fuzz, madeSeeds } from "../../testing/fuzz";

describe("damaged checkpoints", async () => {
  const seeds = await madeSeeds();

  it.each(seeds)("of $name are read or rejected, in time and within their size", async (seed) => {
    const { count, rejected, slowest } = await fuzz([seed], 11, (done) => done >= 150);
    expect(count).toBe(150);
    expect(rejected).toBeGreaterThan(10);
    expect(slowest).toBeLessThan(5000);
  });
});
