import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { measureMemory, measureOldGrowth } from "../../testing/programs/measure-memory";

const folder = scratchFolder();
const MIB = 1 << 20;

describe("merging 128 MiB from 8 ranks under 8 MiB of buffers", () => {
  it("takes the buffers and little more, whatever the size of the checkpoint", async () => {
    const { base, merged, resliced } = await measureMemory(folder.path, 128, 8 * MIB);
    // What is beside the buffers is the garbage of small objects, which does not grow with the checkpoint.
    expect((merged - base) / MIB).toBeLessThan(8 + 24);
    expect((resliced - base) / MIB).toBeLessThan(8 + 24);
  });
});

const TENSORS = triesAll ? 60_000 : 15_000;

describe(`re-slicing ${TENSORS} small tensors from 4 ranks to 3`, () => {
  it("leaves its small objects to the collections that are quick: the heap grows by no 0.8 KiB a tensor", async () => {
    expect((await measureOldGrowth(folder.path, TENSORS)) / TENSORS).toBeLessThan(0.8 * 1024);
  });
});
