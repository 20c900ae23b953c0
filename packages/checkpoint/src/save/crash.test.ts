/** A disk that rejects a call: the save says so, the latest step is whole, and older ones are as they were. */
import { triesAll } from "@opt/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { sampleTensors } from "../../testing/fixtures";
import { manifestLimits } from "../format/manifest";
import { loadCheckpoint } from "../operations";
import { verifyCheckpoint } from "../read/verify";
import { mergeCheckpoint } from "../rewrite/merge";
import { saveCheckpoint } from "./save";

const RUN = "/runs/a";

async function diskWithSteps(...steps: number[]): Promise<MemoryFileSystem> {
  const disk = new MemoryFileSystem();
  await disk.makeFolder("/runs");
  await disk.syncFolder("/");
  for (const step of steps) await save(disk, step);
  return disk;
}

function save(fileSystem: ConstructorParameters<typeof FaultyFileSystem>[0], step: number) {
  return saveCheckpoint(RUN, { step, tensors: sampleTensors(step), values: { step } }, { world: 3, fileSystem });
}

/** The latest step of a disk, after proving that it is whole and holds what was saved as that step. */
async function latestWholeStep(fileSystem: MemoryFileSystem): Promise<number> {
  const { ok, problems } = await verifyCheckpoint(RUN, { fileSystem });
  expect(ok, JSON.stringify(problems)).toBe(true);
  const { step, tensors, values } = await loadCheckpoint(RUN, { fileSystem, as: "plain" });
  expect(values).toEqual({ step });
  for (const [name, { data }] of Object.entries(sampleTensors(step!))) expect(tensors[name]!.data).toEqual(data);
  return step!;
}

async function callsOfOneSave(...steps: number[]): Promise<number> {
  const counting = new FaultyFileSystem(await diskWithSteps(...steps));
  await save(counting, 9);
  return counting.calls;
}

describe.each(["lists boxes", "says cuts"])("a disk that rejects one call of a save whose manifest %s", (way) => {
  const { listed } = manifestLimits;
  beforeAll(() => {
    if (way === "says cuts") manifestLimits.listed = -1;
  });
  afterAll(() => {
    manifestLimits.listed = listed;
  });

  it.each([
    ["ENOSPC", "IO", /space/, 0],
    ["EACCES", "IO", /permissions/, 1],
    ["EROFS", "IO", /read-only/, 2],
    ["ENOENT", "MISSING", /gone/, 3],
  ])("%s: a clear error, nothing left behind, older steps untouched", async (system, code, words, first) => {
    const calls = await callsOfOneSave(1);
    // Together the four try each call.
    for (let at = triesAll ? 0 : first; at < calls; at += triesAll ? 1 : 4) {
      const disk = await diskWithSteps(1);
      const faulty = new FaultyFileSystem(disk, { at, code: system });
      const outcome = await save(faulty, 9).catch((error: unknown) => error);
      if (outcome instanceof Error) {
        expect(outcome).toMatchObject({ code, message: expect.stringMatching(words) });
        expect(await latestWholeStep(disk)).toBeLessThanOrEqual(9);
        await save(disk, 10);
      } else {
        // Only tidying up may fail without failing the save, and it says so.
        expect(outcome).toMatchObject({ step: 9 });
        expect(await latestWholeStep(disk)).toBe(9);
      }
      await save(disk, 11);
      expect(await latestWholeStep(disk)).toBe(11);
    }
  });

  it("and cannot sync a large file: the save and the merge fail", async () => {
    const tensors = { w: { dtype: "U8" as const, shape: [34 << 20], data: new Uint8Array(34 << 20) } };
    const disk = await diskWithSteps(1);
    const rejecting = () => new FaultyFileSystem(disk, { at: 0, only: "sync" });
    const saving = saveCheckpoint(RUN, { step: 9, tensors }, { fileSystem: rejecting() });
    await expect(saving).rejects.toMatchObject({ code: "IO", message: expect.stringContaining("syncing failed") });
    expect(await latestWholeStep(disk)).toBe(1);
    await saveCheckpoint(RUN, { step: 9, tensors }, { fileSystem: disk });
    const merging = mergeCheckpoint(RUN, "/runs/w.safetensors", { fileSystem: rejecting() });
    await expect(merging).rejects.toMatchObject({ code: "IO", message: expect.stringContaining("syncing failed") });
    expect((await disk.list("/runs")).map(({ name }) => name)).toEqual(["a"]);
  });
});
