import { getHeapSpaceStatistics } from "node:v8";
import { describe, expect, it } from "vitest";
import { saveCheckpoint } from "../save/save";
import { scratchFolder } from "../testing/fixtures";
import { measureMemory } from "../testing/programs/measure-memory";
import { reshardCheckpoint } from "./reshard";

const folder = scratchFolder();
const MIB = 1 << 20;

/** What only slow collections free; how much of the young waits for a quick one differs from Node to Node. */
function oldBytes(): number {
  const old = getHeapSpaceStatistics().filter(({ space_name }) => !space_name.startsWith("new_"));
  return old.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}

describe("merging 192 MiB from 8 ranks under 8 MiB of buffers", () => {
  it("takes the buffers and little more, whatever the size of the checkpoint", async () => {
    const { base, merged, resliced } = await measureMemory(folder.path, 192, 8 * MIB);
    // What is beside the buffers is the garbage of small objects, which does not grow with the checkpoint.
    expect((merged - base) / MIB).toBeLessThan(8 + 24);
    expect((resliced - base) / MIB).toBeLessThan(8 + 24);
  });
});

describe("re-slicing 20,000 small tensors from 4 ranks to 3", () => {
  it("leaves its small objects to the collections that are quick: the heap grows by no 5 KiB a tensor", async () => {
    const weight = { dtype: "F32", shape: [8, 4], data: new Uint8Array(128) };
    const tensors = Array.from({ length: 20_000 }, (_, i) => [`layer.${i}.weight`, weight] as const);
    await saveCheckpoint(`${folder.path}/small`, { step: 1, tensors }, { world: 4 });
    let least = Infinity;
    let grown = 0;
    const progress = () => {
      const held = oldBytes();
      least = Math.min(least, held);
      grown = Math.max(grown, held - least);
    };
    await reshardCheckpoint(`${folder.path}/small`, `${folder.path}/small3`, { ranks: 3, progress });
    expect(grown / MIB).toBeLessThan(16);
  });
});
