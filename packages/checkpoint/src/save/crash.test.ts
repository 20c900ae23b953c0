/** Whatever dies at whatever moment: the latest step is whole, and older ones are as they were. */
import { describe, expect, it } from "vitest";
import { loadCheckpoint } from "../read/load";
import { mergeCheckpoint } from "../read/merge";
import { verifyCheckpoint } from "../read/verify";
import { FaultyFileSystem } from "../testing/disks/faulty-file-system";
import { CRASHES, MemoryFileSystem } from "../testing/disks/memory-file-system";
import { sampleTensors } from "../testing/fixtures";
import { type SaveOptions, saveCheckpoint } from "./save";

const RUN = "/runs/a";

async function diskWithSteps(...steps: number[]): Promise<MemoryFileSystem> {
  const disk = new MemoryFileSystem();
  await disk.makeFolder("/runs");
  await disk.syncFolder("/");
  for (const step of steps) await save(disk, step);
  return disk;
}

function save(fileSystem: ConstructorParameters<typeof FaultyFileSystem>[0], step: number, options: SaveOptions = {}) {
  return saveCheckpoint(
    RUN,
    { step, tensors: sampleTensors(step), values: { step } },
    { world: 3, fileSystem, ...options },
  );
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

async function callsOfOneSave(options: SaveOptions, ...steps: number[]): Promise<number> {
  const counting = new FaultyFileSystem(await diskWithSteps(...steps));
  await save(counting, 9, options);
  return counting.calls;
}

describe.each<[string, SaveOptions, number[]]>([
  ["a save", {}, [1, 2]],
  ["a save that keeps two", { keep: 2 }, [1, 2, 3]],
  ["a save that keeps one", { keep: 1 }, [1]],
  ["a save over the same step", { overwrite: true }, [1, 9]],
])("%s killed at every call to the disk", (_, options, before) => {
  it("leaves a whole latest step on every kind of disk, and the next save works", async () => {
    const calls = await callsOfOneSave(options, ...before);
    expect(calls).toBeGreaterThan(25);
    let survived = 0;
    for (let at = 0; at < calls; at++) {
      for (const written of [0, 0.5]) {
        const disk = await diskWithSteps(...before);
        const dying = new FaultyFileSystem(disk, { at, how: "dies", written });
        const outcome = await save(dying, 9, options).then(
          () => "saved",
          () => "failed",
        );
        for (const crash of CRASHES) {
          const after = disk.afterCrash(crash);
          const latest = await latestWholeStep(after);
          // What was reported as saved must be there after any crash; what was not, may or may not.
          if (outcome === "saved") expect(latest).toBe(9);
          else expect([9, before.at(-1)]).toContain(latest);
          survived++;
          if (written > 0) continue;
          await save(after, 10, options);
          expect(await latestWholeStep(after)).toBe(10);
          // Also where the only copy of a step had been set aside.
          const names = (await after.list(RUN)).map(({ name }) => name);
          expect(names.filter((name) => !/^step-\d+$/.test(name))).toEqual([]);
        }
      }
    }
    expect(survived).toBe(calls * 2 * CRASHES.length);
  });
});

describe("a disk that refuses one call", () => {
  it.each([
    ["ENOSPC", "IO", /space/],
    ["EACCES", "IO", /permissions/],
    ["EROFS", "IO", /read-only/],
    ["ENOENT", "MISSING", /gone/],
  ])("%s: a clear error, nothing left behind, older steps untouched", async (system, code, words) => {
    const calls = await callsOfOneSave({}, 1);
    for (let at = 0; at < calls; at++) {
      const disk = await diskWithSteps(1);
      const faulty = new FaultyFileSystem(disk, { at, how: "once", code: system });
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

  it("and tells it once, long before a large file ends, fails the save and the merge", async () => {
    const tensors = { w: { dtype: "U8" as const, shape: [34 << 20], data: new Uint8Array(34 << 20) } };
    const disk = await diskWithSteps(1);
    const refusing = () => new FaultyFileSystem(disk, { at: 0, how: "once", only: "sync" });
    const saving = saveCheckpoint(RUN, { step: 9, tensors }, { fileSystem: refusing() });
    await expect(saving).rejects.toMatchObject({ code: "IO", message: expect.stringContaining("syncing failed") });
    expect(await latestWholeStep(disk)).toBe(1);
    await saveCheckpoint(RUN, { step: 9, tensors }, { fileSystem: disk });
    const merging = mergeCheckpoint(RUN, "/runs/w.safetensors", { fileSystem: refusing() });
    await expect(merging).rejects.toMatchObject({ code: "IO", message: expect.stringContaining("syncing failed") });
    expect((await disk.list("/runs")).map(({ name }) => name)).toEqual(["a"]);
  });
});
