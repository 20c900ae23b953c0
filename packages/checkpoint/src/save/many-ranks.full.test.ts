/** 4,096 ranks save 2,170 parameters with AdamW: what one process takes for it. */
import { expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { measureManyRanks } from "../../testing/programs/measure-many-ranks";

const folder = scratchFolder();
const MIB = 1 << 20;

it("have a manifest of 32 MB at most, and a rank plans within 10 seconds and 1 GB", async () => {
  const { save, plan } = await measureManyRanks(folder.path, 4096, 2170);
  console.log({ save, plan });
  expect(save.bytes).toBeLessThan(32e6);
  expect([plan.planned < 10_000, plan.memory < 1e9]).toEqual([true, true]);
  expect(save.planned).toBeLessThan(10_000);
  // The first rank also has the checksums of all.
  expect(save.memory).toBeLessThan(2048 * MIB);
});
