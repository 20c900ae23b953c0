/** A step that is replaced while others read it, or replace it too. */
import type { OptError } from "@opt/core";
import { describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../rewrite/merge";
import { singleProcess } from "../save/ranks/communicator";
import { saveCheckpoint } from "../save/save";
import type { FileSystem } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";
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

/** Lets a writer change names one at a time, and no further than a test wants. */
class Turns {
  #left = 0;
  #go = () => {};
  #stopped = () => {};

  /** Waits until the next change is allowed. */
  async take(): Promise<void> {
    if (this.#left === 0) {
      this.#stopped();
      await new Promise<void>((go) => {
        this.#go = go;
      });
    }
    this.#left--;
  }

  /** Allows so many changes, and resolves when they are made or the writer has ended. */
  async give(count: number, writer: Promise<unknown>): Promise<void> {
    if (count === 0) return;
    this.#left = count;
    const stopped = new Promise<void>((resolve) => {
      this.#stopped = resolve;
    });
    this.#go();
    await Promise.race([stopped, writer]);
  }
}

/** A disk that removes a folder as real ones do: entry by entry. */
function stepwise(disk: MemoryFileSystem, turn: () => Promise<void>): FileSystem {
  const writer = new FaultyFileSystem(disk);
  writer.rename = (from, to) => turn().then(() => disk.rename(from, to));
  writer.remove = async (path) => {
    const inside = (await disk.kind(path)) === "folder" ? await disk.list(path) : [];
    for (const { name } of inside) await turn().then(() => disk.remove(`${path}/${name}`));
    await turn().then(() => disk.remove(path));
  };
  return writer;
}

/** Calls `before` ahead of whatever is asked of the disk. */
function watched(disk: MemoryFileSystem, before: () => Promise<void>): FileSystem {
  const reader = new FaultyFileSystem(disk);
  reader.kind = (path) => before().then(() => disk.kind(path));
  reader.list = (path) => before().then(() => disk.list(path));
  reader.open = async (path, mode) => {
    await before();
    const file = await disk.open(path, mode);
    return {
      ...file,
      read: (target, position) => before().then(() => file.read(target, position)),
      size: () => before().then(() => file.size()),
    };
  };
  return reader;
}

/**
 * Where the writer is when the reader begins, and where it goes at one of the reader's calls. Of six changes two move shards into the
 * step, the third replaces its manifest. Then the old shards go, and the writer's own folder.
 */
const moves = [
  [0, 1],
  [0, 3],
  [0, 6],
  [2, 3],
  [2, 4],
  [2, 6],
  [3, 6],
] as const;

describe.each(["/r", "/r/step-00000001"])("a reader of %s while names change", (path) => {
  it.each(moves)("from change %i to %i, at any of its calls, gets one of the two", async (from, to) => {
    const results = new Set<string>();
    const readers: ((fileSystem: FileSystem) => Promise<unknown>)[] = [
      async (fileSystem) => (await loadCheckpoint(path, { fileSystem, as: "plain" })).values.value,
      async (fileSystem) => (await verifyCheckpoint(path, { fileSystem })).problems.map(({ problem }) => problem),
      async (fileSystem) => {
        await mergeCheckpoint(path, "/m.safetensors", { fileSystem });
        return (await loadCheckpoint("/m.safetensors", { fileSystem, as: "plain" })).values.value;
      },
    ];
    for (const read of readers) {
      for (let at = 0, calls = Number.POSITIVE_INFINITY; at < calls; at++) {
        const disk = new MemoryFileSystem();
        await replace(disk, 1);
        const turns = new Turns();
        const fileSystem = stepwise(disk, () => turns.take());
        const begun = saveCheckpoint("/r", contents(2), { fileSystem, overwrite: true, world: 2 });
        await turns.give(from, begun);
        calls = 0;
        const reader = watched(disk, async () => {
          if (calls++ === at) await turns.give(to - from, begun);
        });
        const result = await read(reader).catch((error: OptError) => `${error.message} (call ${at})`);
        await turns.give(Number.POSITIVE_INFINITY, begun);
        await begun;
        results.add(`${result}`);
      }
    }
    expect([...results].filter((result) => !["", "1", "2"].includes(result))).toEqual([]);
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
  expect(await expectCode("IO", loadCheckpoint("r", { fileSystem: { ...disk, open } }))).toMatch(/Load it again/);
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
