/** Nothing that has changed since it was saved is ever loaded, and what changed is named. */
import { triesAll } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { random, sampleTensors } from "../../testing/fixtures";
import { MANIFEST_FILE, type Manifest, parseManifest } from "../format/manifest";
import { shardName } from "../format/shard";
import { loadCheckpoint } from "../operations";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { type Communicator, localCommunicators } from "../save/ranks/communicator";
import { saveCheckpoint } from "../save/save";
import { verifyCheckpoint } from "./verify";

const STEP = "/runs/a/step-00000001";
let disk: MemoryFileSystem;
let manifest: Manifest;

async function savedDisk(seed = 1): Promise<MemoryFileSystem> {
  const fileSystem = new MemoryFileSystem();
  await saveCheckpoint(
    "/runs/a",
    { step: 1, tensors: sampleTensors(seed), values: { seed } },
    { world: 3, fileSystem },
  );
  return fileSystem;
}

beforeAll(async () => {
  disk = await savedDisk();
  manifest = parseManifest(disk.contents(`${STEP}/${MANIFEST_FILE}`), "manifest");
});

/** Who is to blame for a byte of a file. */
function owner(file: string, byte: number): { subject: string; begin: number; end: number } {
  const length = disk.contents(`${STEP}/${file}`).length;
  if (file === MANIFEST_FILE) return { subject: "manifest", begin: 0, end: length };
  const index = manifest.files.findIndex(({ name }) => name === file);
  const { headerLength } = manifest.files[index]!;
  if (byte < headerLength) return { subject: "header", begin: 0, end: headerLength };
  for (const { name, boxes } of manifest.tensors) {
    const box = boxes.find(
      (one) => one.file === index && byte >= one.byteOffset && byte < one.byteOffset + one.byteLength,
    );
    if (box) return { subject: name, begin: box.byteOffset, end: box.byteOffset + box.byteLength };
  }
  throw new Error(`byte ${byte} of ${file} belongs to nothing`);
}

/** All of them in `npm run test:full`. */
const [FLIPS, RUNS] = triesAll ? [10_000, 5000] : [1500, 800];

describe("flipped bits", () => {
  it("are each found, the tensor, file and byte range named, and the step is not loaded", async () => {
    const files = [MANIFEST_FILE, ...manifest.files.map(({ name }) => name)];
    const next = random(42);
    let found = 0;
    for (let i = 0; i < FLIPS; i++) {
      const file = files[next() % files.length]!;
      const bytes = disk.contents(`${STEP}/${file}`);
      const [byte, bit] = [next() % bytes.length, next() % 8];
      bytes[byte]! ^= 1 << bit;
      const { ok, problems } = await verifyCheckpoint(STEP, { fileSystem: disk });
      const { subject, begin, end } = owner(file, byte);
      expect(ok).toBe(false);
      expect(problems).toEqual([expect.objectContaining({ subject, file, begin, end })]);
      // Loading reads boxes and the manifest; a shard's header is there for other readers.
      if (i % 10 === 0 && subject !== "header") {
        const error = await loadCheckpoint(STEP, { fileSystem: disk, as: "plain" }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({
          code: "CORRUPT",
          message: expect.stringContaining(subject === "manifest" ? "manifest" : file),
        });
      }
      bytes[byte]! ^= 1 << bit;
      found++;
    }
    expect(found).toBe(FLIPS);
    expect((await verifyCheckpoint(STEP, { fileSystem: disk })).ok).toBe(true);
  });
});

describe("runs of bytes that changed", () => {
  it("are each found", async () => {
    const files = [MANIFEST_FILE, ...manifest.files.map(({ name }) => name)];
    const next = random(43);
    for (let i = 0; i < RUNS; i++) {
      const bytes = disk.contents(`${STEP}/${files[next() % files.length]!}`);
      const begin = next() % bytes.length;
      const before = bytes.slice(begin, begin + 2 + (next() % 63));
      for (let at = 0; at < before.length; at++) bytes[begin + at] = next();
      const isSame = Buffer.compare(bytes.subarray(begin, begin + before.length), before) === 0;
      expect((await verifyCheckpoint(STEP, { fileSystem: disk })).ok).toBe(isSame);
      bytes.set(before, begin);
    }
    expect(await verifyCheckpoint(STEP, { fileSystem: disk })).toMatchObject({ ok: true });
  });
});

describe("files that are not the ones that were saved", () => {
  const [first, second] = [`${STEP}/${shardName(0)}`, `${STEP}/${shardName(1)}`];
  it.each<[string, string, (damaged: MemoryFileSystem) => Promise<unknown>]>([
    ["truncated", "CORRUPT", async (damaged) => damaged.replace(first, damaged.contents(first).slice(0, -1))],
    ["emptied", "CORRUPT", async (damaged) => damaged.replace(first, new Uint8Array(0))],
    ["missing", "MISSING", (damaged) => damaged.remove(first)],
    [
      "swapped",
      "CORRUPT",
      async (damaged) => {
        const contents = damaged.contents(first);
        damaged.replace(first, damaged.contents(second));
        damaged.replace(second, contents);
      },
    ],
    ["stale", "CORRUPT", async (damaged) => damaged.replace(first, (await savedDisk(99)).contents(first))],
    ["without a manifest", "MISSING", (damaged) => damaged.remove(`${STEP}/${MANIFEST_FILE}`)],
  ])("%s: rejected by load, merge and reshard with %s", async (_, code, damage) => {
    const fileSystem = await savedDisk();
    await damage(fileSystem);
    const path = "/runs/a";
    await expect(loadCheckpoint(path, { fileSystem, as: "plain" })).rejects.toMatchObject({ code });
    await expect(mergeCheckpoint(path, "/merged.safetensors", { fileSystem })).rejects.toMatchObject({ code });
    await expect(reshardCheckpoint(path, "/runs/b", { ranks: 2, fileSystem })).rejects.toMatchObject({ code });
    expect(await fileSystem.kind("/merged.safetensors")).toBeUndefined();
    const left = (await fileSystem.kind("/runs/b")) ? await fileSystem.list("/runs/b") : [];
    expect(left).toEqual([]);
  });
});

describe("faults that others let through", () => {
  const tensors = (value: number) => ({ w: { dtype: "F32", shape: [2], data: new Float32Array([1, value]) } });

  it("f32 is not loaded into i32 unless asked", async () => {
    const fileSystem = new MemoryFileSystem();
    await saveCheckpoint("/r", { step: 1, tensors: tensors(-2.9) }, { fileSystem });
    const into = { w: { dtype: "I32", shape: [2], data: new Int32Array(2) } };
    await expect(loadCheckpoint("/r", { into, as: "plain", fileSystem })).rejects.toMatchObject({ code: "BAD_DTYPE" });
    await loadCheckpoint("/r", { into, dtype: { w: "i32" }, as: "plain", fileSystem });
    expect([...into.w.data]).toEqual([1, -2]);
  });

  it("a strided shard, two row ranges on one rank, works", async () => {
    const fileSystem = new MemoryFileSystem();
    const rows = (...values: number[]) => new Float32Array(values);
    const piece = (row: number, ...values: number[]) => ({ offset: [row, 0], size: [1, 2], data: rows(...values) });
    const [zero, one] = localCommunicators(2) as [Communicator, Communicator];
    const save = (communicator: Communicator, boxes: ReturnType<typeof piece>[]) =>
      saveCheckpoint(
        "/r",
        { step: 1, tensors: { w: { dtype: "F32", shape: [4, 2], boxes } } },
        { communicator, fileSystem },
      );
    await Promise.all([save(zero, [piece(0, 1, 2), piece(2, 5, 6)]), save(one, [piece(1, 3, 4), piece(3, 7, 8)])]);
    const { tensors } = await loadCheckpoint("/r", { fileSystem });
    expect([...(await tensors.w!.data())]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("a rank whose boxes are missing is rejected, the boxes listed", async () => {
    const fileSystem = new MemoryFileSystem();
    const boxes = [{ offset: [0, 0], size: [1, 2], data: new Float32Array(2) }];
    const save = saveCheckpoint(
      "/r",
      { step: 1, tensors: { w: { dtype: "F32", shape: [3, 2], boxes } } },
      { fileSystem },
    );
    await expect(save).rejects.toMatchObject({ code: "MISSING", message: expect.stringContaining("[1:3, 0:2]") });
  });
});
