import { describe, expect, it } from "vitest";
import { fuzz, madeSeeds } from "../testing/fuzz";

describe("damaged checkpoints", async () => {
  const seeds = await madeSeeds();

  it.each(seeds)("of $name are read or rejected, in time and within their size", async (seed) => {
    const { count, refused, slowest } = await fuzz([seed], 11, (done) => done >= 150);
    expect(count).toBe(150);
    expect(refused).toBeGreaterThan(10);
    expect(slowest).toBeLessThan(5000);
  });
});
