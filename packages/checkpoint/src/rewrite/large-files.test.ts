/** Files that are long enough for the disk to take their pages from memory are what a store in memory is given, byte for byte. */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { localFileSystem } from "../platform/local";
import { verifyCheckpoint } from "../read/verify";
import { saveCheckpoint } from "../save/save";
import { mergeCheckpoint } from "./merge";
import { reshardCheckpoint } from "./reshard";

const MIB = 1 << 20;
const folder = scratchFolder();

/** One tensor of bytes for each length; some are cut into slices that begin within a page. */
function tensorsOf(lengths: readonly number[]) {
  return lengths.map((length, i) => {
    const shape = length % 3 === 0 && length > 0 ? [3, length / 3] : [length];
    return [`t${i}`, { dtype: "U8", shape, data: randomBytes(length, i) }] as const;
  });
}

/** Each with one of two memories; with both in `npm run test:full`. */
const MEMORIES = [64 * MIB, 3 * MIB];

describe.each<[string, number, number[]]>([
  ["of pages", 0, [8 * MIB, 4 * MIB, 12 * MIB]],
  ["of all but pages", 1, [0, 1, 4095, 4096, 4097, 5 * MIB + 1, 3, 9 * MIB - 1, 64 * 1024 + 1, 6 * MIB]],
  ["of many small tensors and a large one", 0, [...Array.from({ length: 300 }, (_, i) => 20_000 + i), 7 * MIB + 3]],
  ["that ends where a page does", 1, [4096 * 1024, 5 * MIB - 7, 7]],
])("a checkpoint %s", (_, memory, lengths) => {
  it.each(triesAll ? MEMORIES : [MEMORIES[memory]!])(
    "saved, merged and sliced anew with %d bytes of memory",
    async (maxMemory) => {
      const inMemory = new MemoryFileSystem();
      await inMemory.makeFolder(folder.path);
      const files: Buffer[][] = [];
      const tensors = tensorsOf(lengths);
      for (const fileSystem of [inMemory, localFileSystem]) {
        const at = (name: string) => join(folder.path, name);
        const read = (path: string) =>
          Buffer.from(fileSystem === inMemory ? inMemory.contents(path) : readFileSync(path));
        const layout = { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": ["x"] } };
        const { path: saved } = await saveCheckpoint(at("run"), { step: 1, tensors }, { layout, fileSystem });
        await mergeCheckpoint(saved, at("merged"), { maxMemory, fileSystem });
        const { path: sliced } = await reshardCheckpoint(saved, at("sliced"), { ranks: 2, maxMemory, fileSystem });
        const shards = [
          ...[0, 1, 2].map((rank) => join(saved, `rank-0000${rank}.safetensors`)),
          ...[0, 1].map((rank) => join(sliced, `rank-0000${rank}.safetensors`)),
        ];
        files.push([at("merged"), ...shards].map(read));
        for (const path of [saved, sliced]) expect((await verifyCheckpoint(path, { fileSystem })).problems).toEqual([]);
      }
      files[0]!.forEach((bytes, i) => void expect(Buffer.compare(files[1]![i]!, bytes), `file ${i}`).toBe(0));
    },
  );
});

it("a disk that is full in the middle leaves nothing behind", async () => {
  const tensors = tensorsOf([16 * MIB, 5 * MIB + 1]);
  const run = join(folder.path, "run");
  await saveCheckpoint(run, { step: 1, tensors }, { world: 2 });
  mkdirSync(join(folder.path, "out"));
  for (const at of [1, 2, 3]) {
    for (const written of [0, 0.4]) {
      const fault = { at, only: "write", code: "ENOSPC", written } as const;
      const outFileSystem = new FaultyFileSystem(localFileSystem, fault);
      const merging = mergeCheckpoint(run, join(folder.path, "out", "merged"), { outFileSystem });
      await expect(merging).rejects.toMatchObject({ code: "IO", message: expect.stringContaining("space") });
      expect(readdirSync(join(folder.path, "out"))).toEqual([]);
    }
  }
});
