/** A step that is replaced while others read it, or replace it too. */
import { describe, expect, it } from "vitest";
import { singleProcess } from "../save/ranks/communicator";
import { saveCheckpoint } from "../save/save";
import type { FileSystem } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";
import { FaultyFileSystem } from "../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../testing/disks/memory-file-system";
import { expectCode } from "../testing/expect-code";
import { loadCheckpoint } from "./load";
import { mergeCheckpoint } from "./merge";
import { verifyCheckpoint } from "./verify";

const contents = (value: number) => ({
  step: 1,
  tensors: Object.fromEntries(
    ["a", "b", "c"].map((name) => [name, { dtype: "F32", shape: [4], data: new Float32Array(4).fill(value) }]),
  ),
  values: { value },
});

const replace = (fileSystem: MemoryFileSystem, value: number) =>
  saveCheckpoint("/r", contents(value), { fileSystem, overwrite: true, world: 2 });

/** A disk on which the step is replaced at the reader's call number `at`. */
function interrupted(disk: MemoryFileSystem, at: number): FaultyFileSystem {
  const reader = new FaultyFileSystem(disk);
  let done = false;
  const open = reader.open.bind(reader);
  reader.open = async (path, mode) => {
    if (reader.calls >= at && !done) {
      done = true;
      await replace(disk, 2);
    }
    return open(path, mode);
  };
  return reader;
}

describe.each(["/r", "/r/step-00000001"])("a reader of %s, replaced at any call", (path) => {
  it.each([0, 2, 4, 6, 8, 10, 12, 16, 20])("%i gets one of the two, whole", async (at) => {
    const disk = new MemoryFileSystem();
    await replace(disk, 1);
    const { tensors, values } = await loadCheckpoint(path, { fileSystem: interrupted(disk, at), as: "plain" });
    const numbers = Object.values(tensors).flatMap(({ data }) => [...new Float32Array(data.buffer)]);
    expect(new Set(numbers)).toEqual(new Set([values.value]));
    const again = new MemoryFileSystem();
    await replace(again, 1);
    expect(await verifyCheckpoint(path, { fileSystem: interrupted(again, at) })).toMatchObject({ ok: true });
    const merging = new MemoryFileSystem();
    await replace(merging, 1);
    await mergeCheckpoint(path, "/m.safetensors", { fileSystem: interrupted(merging, at) });
  });
});

it("a reader of a store gets the new one where its manifest is replaced between looking and reading", async () => {
  const disk = memoryFileSystem();
  const save = (value: number) => saveCheckpoint("r", contents(value), { fileSystem: disk, overwrite: true, world: 2 });
  await save(1);
  let left = 3;
  const open: FileSystem["open"] = async (path, mode) => {
    const file = await disk.open(path, mode);
    const read: typeof file.read = async (...range) => {
      if (path.endsWith("manifest.json") && left-- > 0) await save(5 - left);
      return file.read(...range);
    };
    return { ...file, read };
  };
  const { values } = await loadCheckpoint("r", { fileSystem: { ...disk, open } });
  expect([left, values.value]).toEqual([-1, 5]);
  left = 99;
  expect(await expectCode("IO", loadCheckpoint("r", { fileSystem: { ...disk, open } }))).toMatch(/Load it anew/);
});

it("two that replace it at once both succeed, and one of them is there", async () => {
  const disk = new MemoryFileSystem();
  await replace(disk, 0);
  await Promise.all(
    [1, 2, 3].map((value) =>
      saveCheckpoint("/r/", contents(value), { fileSystem: disk, overwrite: true, communicator: singleProcess() }),
    ),
  );
  await Promise.all([
    replace(disk, 4),
    saveCheckpoint("/r", contents(5), { fileSystem: disk, overwrite: true, communicator: singleProcess() }),
  ]);
  expect([4, 5]).toContain((await loadCheckpoint("/r", { fileSystem: disk })).values.value);
  expect((await disk.list("/r")).map(({ name }) => name)).toEqual(["step-00000001"]);
});
