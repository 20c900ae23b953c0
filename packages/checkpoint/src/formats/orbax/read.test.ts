import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import {
  json,
  ocdbtFolder,
  shardedZarr,
  treeMetadata,
  W,
  writtenByOrbax,
  zarrValues,
  zstdFrame,
} from "../../../testing/files/orbax-files";
import { openFiles } from "../../../testing/open-files";
import { readFloats, readTensor } from "../../../testing/read-tensor";
import { openForeign } from "../registry";
import { crc32c } from "./crc32c";
import { unpacked } from "./zstd";

type Files = Record<string, Uint8Array>;
const inside = (folder: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, bytes]) => [`${folder}/${name}`, bytes]));
const metadata = { _METADATA: treeMetadata() };
const empty = new Uint8Array(0);

describe("Orbax", () => {
  it.each(["zarr2", "zarr3"] as const)("reads what orbax 0.12 wrote as %s in OCDBT", async (kind) => {
    const source = await openFiles(writtenByOrbax(kind), "");
    expect(source).toMatchObject({ format: "Orbax", step: 5, values: { step: 5, lr: 0.5, name: "run" } });
    expect(await readFloats(source, "params.w")).toEqual(Array.from({ length: 24 }, (_, i) => i));
    expect(source.tensors.get("params.w")!.boxes.map(({ offset }) => offset)).toEqual([
      [0, 0],
      [0, 3],
      [2, 0],
      [2, 3],
    ]);
    expect(source.tensors.get("params.b")).toMatchObject({ dtype: "BF16", shape: [4] });
    expect([...new Uint16Array((await readTensor(source, "params.b")).buffer)]).toEqual([0, 0x3f80, 0x4000, 0x4040]);
    expect([...source.tensors.keys()].sort()).toEqual(["params.b", "params.w", "step"]);
  });

  it.each<[string, Files]>([
    ["plain zarr", { ...metadata, ...zarrValues() }],
    ["plain zarr that is not packed", { ...metadata, ...zarrValues({ compressor: null }) }],
    ["column-major chunks", { ...metadata, ...zarrValues({ order: "F" }) }],
    [
      "a tree with a None, which is stored nowhere",
      { _METADATA: treeMetadata(["w", "n"], undefined, ["n"]), ...zarrValues() },
    ],
    ["a tree of nodes", { ...metadata, ...ocdbtFolder(zarrValues()) }],
    ["nodes that are not packed", ocdbtFolder(zarrValues(), { isPacked: false })],
    ["a step's item", { _CHECKPOINT_METADATA: json({}), ...inside("default", { ...metadata, ...zarrValues() }) }],
  ])("reads %s, chunks that reach beyond the array too", async (_, files) => {
    const source = await openFiles(files, "");
    expect(await readFloats(source, "w")).toEqual(W);
    await source.close();
  });

  it("reads a shard of which some inner chunks are beyond the array", async () => {
    const source = await openFiles({ ...metadata, ...shardedZarr() }, "");
    expect(await readFloats(source, "w")).toEqual(W);
  });

  it("opens of a folder of steps the last or the one asked for; items have their names before those inside", async () => {
    const step = (n: number) =>
      inside(`runs_${n}`, {
        _CHECKPOINT_METADATA: json({}),
        ...inside("state", { ...metadata, ...zarrValues() }),
        "meta/metadata": json({ n }),
      });
    const fileSystem = memoryFiles({ ...step(9), ...step(10) });
    expect(await openForeign("/root", fileSystem)).toMatchObject({ step: 10, values: { meta: { n: 10 } } });
    const source = await openForeign("/root", fileSystem, { step: 9 });
    expect(source).toMatchObject({ step: 9, values: { meta: { n: 9 } } });
    expect([...source.tensors.keys()]).toEqual(["state.w"]);
    await expectCode("MISSING", openForeign("/root", fileSystem, { step: 8 }));
  });

  it("reads chunks that were left out as zeros, where the tree does not say that all are stored", async () => {
    const { "w/1.1": _, ...files } = zarrValues();
    const source = await openFiles({ _METADATA: treeMetadata(["w"], {}), ...files }, "");
    expect(await readFloats(source, "w")).toEqual(W.with(-1, 0));
    await expectCode("MISSING", openFiles({ ...metadata, ...files }, ""));
  });

  it("lists an array that is packed in another way, and reads the others", async () => {
    const blosc = {
      ...zarrValues(),
      "v/.zarray": json({ zarr_format: 2, shape: [1], chunks: [1], dtype: "<f4", compressor: { id: "blosc" } }),
    };
    const source = await openFiles({ ...metadata, ...blosc }, "");
    expect(source.unreadable!.get("v")).toMatch(/blosc/);
    expect(await readFloats(source, "w")).toEqual(W);
  });

  const flipped = (files: Files, name: string, at: number): Files => ({
    ...files,
    [name]: files[name]!.with(at, files[name]![at]! ^ 1),
  });
  const tree = ocdbtFolder(zarrValues());
  it.each<[string, string, Files]>([
    ["a flipped bit in the manifest", "CORRUPT", flipped(tree, "manifest.ocdbt", 40)],
    ["a flipped bit in the root", "CORRUPT", flipped(tree, "p/d/0", tree["p/d/0"]!.length - 20)],
    ["a node that is in the tree twice", "CORRUPT", ocdbtFolder(zarrValues(), { cycle: true })],
    ["a path that leaves the folder", "REFUSED", ocdbtFolder(zarrValues(), { path: "../../x" })],
    ["a data file that is missing", "MISSING", { "manifest.ocdbt": tree["manifest.ocdbt"]! }],
    ["a data file that is cut", "CORRUPT", { ...tree, "p/d/0": tree["p/d/0"]!.subarray(0, -1) }],
    ["an array that is missing", "MISSING", { _METADATA: treeMetadata(["w", "v"]), ...zarrValues() }],
    ["texts that are missing", "MISSING", { ...writtenByOrbax("zarr2"), "_strings.json": json({}) }],
    ["chunks whose shape is no array's", "CORRUPT", { ...metadata, ...zarrValues({ chunks: [2] }) }],
    ["a chunk of no elements", "CORRUPT", { ...metadata, ...zarrValues({ chunks: [2, 0] }) }],
    ["more chunks than there are", "MISSING", { ...metadata, ...zarrValues({ shape: [1e9, 1e6] }) }],
    ["a chunk that no frame can hold", "CORRUPT", { ...metadata, ...zarrValues({ chunks: [2, 1e9] }) }],
    ["a raw chunk of another length", "CORRUPT", { ...metadata, ...zarrValues({ compressor: null }), "w/0.1": empty }],
    [
      "a save that did not end",
      "MISSING",
      { _METADATA: treeMetadata(["w"], { use_ocdbt: true }), "ocdbt.process_0/d/0": empty },
    ],
    ["a step without items", "MISSING", { _CHECKPOINT_METADATA: json({}), "a/b": empty }],
  ])("meets %s", async (_, code, files) => {
    await expectCode(code as never, openFiles(files, ""));
  });

  it("meets a chunk that unpacks to another length when it is read", async () => {
    const source = await openFiles({ ...metadata, ...zarrValues(), "w/0.0": zstdFrame(new Uint8Array(20)) }, "");
    await expectCode("CORRUPT", readFloats(source, "w"));
  });
});

it("CRC-32C is the one of RFC 3720", () => expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283));

describe("Zstandard frames", () => {
  it("of unknown length unpack too, and what is cut does not", async () => {
    const head = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00];
    const frame = Uint8Array.of(...head, (3 << 3) & 255, 0, 0, 1, 2, 3, (5 << 3) | 3, 0, 0, 9);
    expect([...(await unpacked(frame, "a"))]).toEqual([1, 2, 3, 9, 9, 9, 9, 9]);
    for (let end = 0; end < frame.length; end++) await expectCode("CORRUPT", unpacked(frame.subarray(0, end), "a"));
  });

  it("that claim what they cannot hold are rejected before it is allocated", async () => {
    const claim = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 9, 0, 0, 1);
    await expectCode("CORRUPT", unpacked(claim, "a"));
  });
});
