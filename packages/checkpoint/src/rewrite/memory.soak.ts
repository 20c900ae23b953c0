import { describe, expect, it } from "vitest";
import { scratchFolder } from "../../testing/fixtures";
import { measureMemory } from "../../testing/programs/measure-memory";

const folder = scratchFolder();
const MIB = 1 << 20;

describe("merging 2 GiB from 8 ranks with --max-memory 64MiB", () => {
  it("stays under 64 MiB and a fixed base", async () => {
    const { base, merged, resliced } = await measureMemory(folder.path, 2048, 64 * MIB);
    console.log(
      `base ${(base / MIB).toFixed(0)} MiB, merging +${((merged - base) / MIB).toFixed(0)}, re-slicing +${((resliced - base) / MIB).toFixed(0)}`,
    );
    expect((merged - base) / MIB).toBeLessThan(64 + 24);
    expect((resliced - base) / MIB).toBeLessThan(64 + 24);
  });
});
