/** What verifying reads, counts and says, byte by byte; corruption.test.ts changes bytes at random. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FaultyFileSystem } from "../../testing/disks/faulty-file-system";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { memoryFiles } from "../../testing/disks/memory-files";
import { expectCode } from "../../testing/expect-code";
import {
  floats,
  legacyTorch,
  mindsporeFile,
  safetensorsFile,
  torchTensorCall,
  torchZip,
} from "../../testing/files/made-files";
import { torchFile } from "../../testing/files/torch-files";
import { usingSource } from "../../testing/using-source";
import { encodeManifest, MANIFEST_FILE, type Manifest, parseManifest } from "../format/manifest";
import { shardName } from "../format/shard";
import { loadCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";
import { verifyCheckpoint } from "./verify";

const [first, second] = [shardName(0), shardName(1)];
const bytesOf = (length: number) => ({ dtype: "U8", shape: [length], data: new Uint8Array(length).fill(7) });

/** Two ranks that share the tensors by size: the largest is in the first's file. */
async function saved(tensors: Parameters<typeof saveCheckpoint>[1]["tensors"], options: object = {}) {
  const fileSystem = new MemoryFileSystem();
  const layout = { mesh: { shape: [2], axes: ["x"] }, tensors: { "*": "replicate" } } as const;
  const { path } = await saveCheckpoint("/r", { step: 1, tensors }, { fileSystem, layout, ...options });
  const bytes = (name: string) => fileSystem.contents(`${path}/${name}`);
  const manifest = parseManifest(bytes(MANIFEST_FILE), "manifest");
  return {
    path,
    fileSystem,
    bytes,
    manifest,
    verify: (options: object = {}) => verifyCheckpoint(path, { fileSystem, ...options }),
    /** The step as if another manifest had been written. */
    claim: (change: Partial<Manifest>) =>
      fileSystem.replace(`${path}/${MANIFEST_FILE}`, encodeManifest({ ...manifest, ...change })),
    flip: (name: string, at: number) => {
      bytes(name)[bytes(name).length + at]! ^= 1;
    },
    cut: (name: string, length: number) => fileSystem.replace(`${path}/${name}`, bytes(name).slice(0, length)),
  };
}

type Saved = Awaited<ReturnType<typeof saved>>;

describe("a whole step", () => {
  it("is read once from end to end, and told of on the way", async () => {
    const { path, manifest, verify } = await saved({ a: bytesOf(9 << 20), b: bytesOf(100), c: bytesOf(3) });
    const total = manifest.files.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const told: [number, number][] = [];
    const result = await verify({
      progress: ({ bytes, total }: { bytes: number; total: number }) => told.push([bytes, total]),
    });
    expect(result).toEqual({ ok: true, path, problems: [], tensors: 3, bytes: total, unverified: [] });
    expect(told.at(-1)).toEqual([total, total]);
    expect(told.every(([done, all], i) => all === total && done > (told[i - 1]?.[0] ?? 0))).toBe(true);
  });

  it("may tell of its tensors in any order", async () => {
    const { manifest, claim, verify } = await saved({ a: bytesOf(9), b: bytesOf(50), c: bytesOf(3), d: bytesOf(40) });
    claim({ tensors: [...manifest.tensors].reverse() });
    expect(await verify()).toMatchObject({ ok: true, problems: [] });
    claim({ tensors: [...manifest.tensors].sort((a, b) => a.shape[0]! - b.shape[0]!) });
    expect(await verify()).toMatchObject({ ok: true, problems: [] });
  });

  it("gives its files back, whatever is found", async () => {
    const { path, fileSystem, flip } = await saved({ a: bytesOf(9), b: bytesOf(5) });
    flip(first, -1);
    const counted = new FaultyFileSystem(fileSystem, { at: Number.POSITIVE_INFINITY, only: "close" });
    await verifyCheckpoint(path, { fileSystem: counted });
    const opened = new FaultyFileSystem(fileSystem, { at: Number.POSITIVE_INFINITY, only: "open" });
    await verifyCheckpoint(path, { fileSystem: opened });
    expect(counted.calls).toBe(opened.calls);
  });
});

describe("what is found", () => {
  it("is told by file, then by place, in whatever order it was found", async () => {
    const { flip, cut, bytes, verify } = await saved({
      a: bytesOf(9 << 20),
      b: bytesOf(100),
      c: bytesOf(50),
      d: bytesOf(3),
    });
    flip(first, -1);
    flip(second, -160);
    flip(second, -100);
    const length = bytes(second).length;
    cut(second, length - 1);
    const { problems } = await verify();
    expect(problems.map(({ file }) => file)).toEqual([first, second, second, second, second]);
    const begins = problems.slice(1).map(({ begin }) => begin);
    expect(begins).toEqual([...begins].sort((a, b) => a - b));
    expect(problems.at(-1)).toMatchObject({ subject: "file", begin: length - 1, end: length });
  });

  it.each<[string, (step: Saved) => unknown, (step: Saved) => object[]]>([
    [
      "bytes after the end, which are of the file",
      ({ fileSystem, path, bytes }) => fileSystem.replace(`${path}/${first}`, new Uint8Array([...bytes(first), 0])),
      ({ bytes }) => [{ subject: "file", file: first, begin: bytes(first).length - 1, end: bytes(first).length }],
    ],
    [
      "every tensor of a file that is not there",
      ({ fileSystem, path }) => fileSystem.remove(`${path}/${second}`),
      () => ["header", "b", "c"].map((subject) => ({ subject, file: second })),
    ],
    [
      "an invalid manifest",
      ({ fileSystem, path }) => fileSystem.replace(`${path}/${MANIFEST_FILE}`, new Uint8Array(7)),
      () => [{ subject: "manifest", file: MANIFEST_FILE, begin: 0, end: 7, problem: expect.any(String) }],
    ],
    ["a box and nothing of its file besides", ({ flip }) => flip(first, -1), () => [{ subject: "a", file: first }]],
  ])("%s", async (_, damage, problems) => {
    const step = await saved({ a: bytesOf(9), b: bytesOf(3), c: bytesOf(2) }, { sha256: true });
    await damage(step);
    const result = await step.verify();
    expect(result).toMatchObject({ ok: false, path: step.path, unverified: [] });
    expect(result.problems).toMatchObject(problems(step));
  });

  it("a file that cannot be read, its range and name", async () => {
    const { path, fileSystem } = await saved({ a: bytesOf(9) });
    const faulty = new FaultyFileSystem(fileSystem, { at: 1, only: "read" });
    const { problems } = await verifyCheckpoint(path, { fileSystem: faulty });
    expect(problems).toMatchObject([{ subject: "header", file: first, begin: 0 }]);
  });

  it("elements that no box holds", async () => {
    const { manifest, claim, verify } = await saved({ a: bytesOf(9) });
    const [tensor] = manifest.tensors;
    const boxes = tensor!.boxes.map((box) => ({ ...box, offset: [0], size: [9] }));
    claim({ tensors: [{ ...tensor!, shape: [12], boxes }] });
    expect((await verify()).problems).toMatchObject([{ subject: "a", file: MANIFEST_FILE }]);
  });

  it.each(["crc32", "sha256"] as const)("a file whose own %s is another, its boxes' being right", async (sum) => {
    const { manifest, claim, verify } = await saved({ a: bytesOf(9), b: bytesOf(3) }, { sha256: true });
    expect(await verify()).toMatchObject({ ok: true });
    const { byteLength } = manifest.files[1]!;
    const other = sum === "crc32" ? { crc32: 1 } : { sha256: "0".repeat(64) };
    claim({ files: manifest.files.map((file, i) => (i === 1 ? { ...file, ...other } : file)) });
    expect((await verify()).problems).toMatchObject([{ subject: "file", file: second, begin: 0, end: byteLength }]);
  });

  it("a tensor larger than what it reads at once, in every piece", async () => {
    const { verify, flip } = await saved({ w: bytesOf(9 << 20) });
    for (const at of [1, 4 << 20, 8 << 20]) {
      flip(first, -at);
      expect((await verify()).problems).toMatchObject([{ subject: "w" }]);
      flip(first, -at);
    }
    expect(await verify()).toMatchObject({ ok: true });
  });

  it("bytes that no box covers", async () => {
    const { fileSystem, path, manifest, claim, flip } = await saved({ v: bytesOf(64), w: bytesOf(64) });
    claim({ tensors: manifest.tensors.filter(({ name }) => name !== "w") });
    expect(await verifyCheckpoint(path, { fileSystem })).toMatchObject({ ok: true });
    flip(second, -1);
    const { problems } = await verifyCheckpoint(path, { fileSystem });
    expect(problems).toMatchObject([{ subject: "file", file: second }]);
  });
});

describe("a file of another system", () => {
  const named = [
    { name: "w", shape: [2], data: floats(1, 2) },
    { name: "v", shape: [0], data: floats() },
  ];
  const torch = () => torchZip({ w: torchTensorCall("0", [3]) }, { "0": floats(1, 2, 3) });

  it("is read, and its tensors without a checksum named", async () => {
    const fileSystem = memoryFiles({ "m.safetensors": safetensorsFile(named) });
    const told: [number, number][] = [];
    const result = await verifyCheckpoint("/root/m.safetensors", {
      fileSystem,
      progress: ({ bytes, total }) => told.push([bytes, total]),
    });
    expect(result).toMatchObject({ ok: true, problems: [], tensors: 2, bytes: 8, unverified: ["w"] });
    expect(told.at(-1)).toEqual([8, 8]);
  });

  const shared = {
    w: torchTensorCall("0", [2, 2], { stride: [1, 2], count: 6 }),
    v: torchTensorCall("0", [2], { count: 6 }),
  };
  const storage = { "0": floats(1, 2, 3, 4, 5, 6) };
  it.each([
    ["PyTorch's zip", torch(), []],
    ["PyTorch's zip, of a storage in parts and columns", torchZip(shared, storage), []],
    ["PyTorch's before 1.6", legacyTorch({ w: torchTensorCall("0", [3]) }, { "0": floats(1, 2, 3) }), ["w"]],
    ["MindSpore's with a checksum", mindsporeFile([["w", [2], "Float32", floats(1, 2)]], { crc: true }), []],
    ["MindSpore's without", mindsporeFile([["w", [2], "Float32", floats(1, 2)]]), ["w"]],
  ])("%s: what its own checksums vouch for is verified", async (_, bytes, unverified) => {
    const fileSystem = memoryFiles({ "m.ckpt": bytes });
    expect(await verifyCheckpoint("/root/m.ckpt", { fileSystem })).toMatchObject({ ok: true, unverified });
    expect(await loadCheckpoint("/root/m.ckpt", { fileSystem, as: "plain" })).toMatchObject({ unverified });
  });

  it("damaged: the tensor is named, and the rest is read", async () => {
    const bytes = torch();
    expect(await verifyCheckpoint("/root/m.pt", { fileSystem: memoryFiles({ "m.pt": bytes }) })).toMatchObject({
      ok: true,
    });
    const at = Buffer.from(bytes).indexOf(Buffer.from(floats(1, 2, 3)));
    bytes[at]! ^= 1;
    const { ok, problems, tensors } = await verifyCheckpoint("/root/m.pt", {
      fileSystem: memoryFiles({ "m.pt": bytes }),
    });
    expect([ok, tensors]).toEqual([false, 1]);
    expect(problems).toMatchObject([{ subject: "w", file: "m.pt", begin: at, end: at + 12 }]);
  });

  it("a DCP folder's: the chunk's own file and bytes are told", async () => {
    const file = "__1_0.distcp";
    const read = (name: string) => new Uint8Array(readFileSync(join(torchFile("nested"), name)));
    const files = Object.fromEntries([".metadata", "__0_0.distcp", file].map((name) => [name, read(name)]));
    const at = await usingSource(torchFile("nested"), async ({ tensors }) => {
      const box = tensors.get("model.2.bias")!.boxes.find((each) => each.file === file)!;
      const stored = new Uint8Array(box.byteLength);
      await box.read(stored, 0);
      return Buffer.from(files[file]!).indexOf(stored, 39410);
    });
    files[file]![at]! ^= 1;
    const { problems } = await verifyCheckpoint("/root", { fileSystem: memoryFiles(files) });
    expect(problems).toMatchObject([{ subject: "model.2.bias", file, begin: 39410, end: 39410 + 1577 }]);
  });

  it("cut off: its header is told", async () => {
    const fileSystem = memoryFiles({ "m.safetensors": safetensorsFile(named).slice(0, -3) });
    const { ok, problems } = await verifyCheckpoint("/root/m.safetensors", { fileSystem });
    expect(ok).toBe(false);
    expect(problems).toMatchObject([{ subject: "header", file: "/root/m.safetensors", begin: 0, end: 0 }]);
  });

  it("gives its files back", async () => {
    const files = memoryFiles({ "m.safetensors": safetensorsFile(named) });
    const calls = async (only: string) => {
      const counted = new FaultyFileSystem(files, { at: Number.POSITIVE_INFINITY, only });
      await verifyCheckpoint("/root/m.safetensors", { fileSystem: counted });
      return counted.calls;
    };
    expect(await calls("close")).toBe(await calls("open"));
  });

  it("of a set that is not all there: rejected", async () => {
    const index = Buffer.from(JSON.stringify({ weight_map: { w: "1.safetensors" } }));
    const fileSystem = memoryFiles({ "m.safetensors.index.json": index });
    await expectCode("MISSING", verifyCheckpoint("/root/m.safetensors.index.json", { fileSystem }));
  });

  it("not there, or of no system: rejected", async () => {
    const fileSystem = memoryFiles({ "m.txt": new TextEncoder().encode("hello") });
    await expectCode("MISSING", verifyCheckpoint("/root/m.safetensors", { fileSystem }));
    await expectCode("UNSUPPORTED", verifyCheckpoint("/root/m.txt", { fileSystem }));
  });

  it("is no step", async () => {
    const fileSystem = memoryFiles({ "m.pt": torch() });
    await expectCode("MISSING", verifyCheckpoint("/root/m.pt", { fileSystem, step: 3 }));
  });
});

it("a step that is replaced again and again is reported after twenty tries", async () => {
  const { path, fileSystem } = await saved({ a: bytesOf(9) });
  let tries = 0;
  const reader = new FaultyFileSystem(fileSystem);
  const { open } = reader;
  reader.open = async (name, mode) => {
    if (/rank-/.test(name)) {
      tries++;
      const save = { step: 1, tensors: { a: bytesOf(9) } };
      await saveCheckpoint("/r", save, { fileSystem, overwrite: true });
    }
    return open.call(reader, name, mode);
  };
  expect((await verifyCheckpoint(path, { fileSystem: reader })).ok).toBe(false);
  expect(tries).toBe(20);
});
