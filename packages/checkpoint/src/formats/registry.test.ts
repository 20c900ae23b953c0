import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../testing/disks/memory-files";
import { expectCode } from "../../testing/expect-code";
import * as made from "../../testing/files/made-files";
import { Call, Name, pickleOf, Tuple } from "../../testing/files/pickles";
import { STATE, STORAGES } from "../../testing/files/torch-state";
import { zipOf } from "../../testing/files/zips";
import { openFiles } from "../../testing/open-files";
import { readFloats } from "../../testing/read-tensor";
import type { Json } from "../format/source";
import { openForeign } from "./registry";

const { floats, torchTensorCall, numpyCall } = made;
type Files = Record<string, Uint8Array>;

const index = (file: string): Uint8Array => Buffer.from(JSON.stringify({ weight_map: { w: file } }));
const shard = (name: string, offset: number[], shape: number[], ...values: number[]): Uint8Array =>
  made.safetensorsFile([{ name, shape, data: floats(...values) }], {
    DCP_SHARDING_INFO: JSON.stringify({ [name]: { saved_offsets: offset } }),
  });
const RANKS: Files = {
  "ckpt_strategy.ckpt": made.strategyFile({
    rows: { devices: [2, 2], map: [1, -1] },
    both: { devices: [2, 2], map: [1, 0] },
    sharded: { devices: [2, 2], map: [-1, -1], shardStep: 1, shardSize: 4 },
    stepped: { devices: [2, 2], map: [-1, -1], shardStep: 2, shardSize: 2 },
  }),
  ...Object.fromEntries(
    [0, 1, 2, 3].flatMap((rank) => {
      const row = Math.floor(rank / 2);
      const file = (plus: number): Uint8Array =>
        made.mindsporeFile([
          ["rows", [1, 2], "Float32", floats(row * 2 + plus, row * 2 + 1 + plus)],
          ["both", [1, 1], "Float32", floats(rank + plus)],
          ["moments.both", [1, 1], "Float32", floats(rank * 10 + plus)],
          ["sharded", [1, 2], "Float32", floats(rank, rank)],
          ["stepped", [1, 2], "Float32", floats(row, row + 4)],
          ["alone", [0], "Float32", floats(3)],
        ]);
      return [
        [`rank_${rank}/net-9_100.ckpt`, file(100)],
        [`rank_${rank}/net-10_2.ckpt`, file(0)],
      ];
    }),
  ),
};

describe("every format, made here", () => {
  it.each<[string, string, Files, Record<string, number[]>, Record<string, Json>?, path?: string]>([
    [
      "PyTorch zip",
      "PyTorch",
      { "a.pt": made.torchZip(STATE, STORAGES) },
      { "model.fc.bias": [7, 8], "optimizer.state.1.exp_avg": [15, 16] },
      { "optimizer.param_groups.0.lr": 0.5 },
    ],
    [
      "PyTorch zip whose members have a long folder, another member first",
      "PyTorch",
      {
        "a.pt": zipOf({
          ".format_version": Buffer.from("1"),
          "the_name_of_a_long_experiment_of_2026/data.pkl": pickleOf(torchTensorCall("0", [2]), 2),
          "the_name_of_a_long_experiment_of_2026/data/0": floats(1, 2),
        }),
      },
      { tensor: [1, 2] },
    ],
    [
      "PyTorch before 1.6",
      "PyTorch",
      { "a.pth": made.legacyTorch(STATE, STORAGES) },
      { "model.fc.weight": [1, 2, 3, 4, 5, 6] },
    ],
    [
      "PyTorch before 1.6, storages that are parts of another",
      "PyTorch",
      {
        "a.pth": made.legacyTorch(
          {
            all: torchTensorCall("0", [6]),
            part: torchTensorCall("0", [2], { count: 6, view: [3, 2] }),
            inside: torchTensorCall("0", [1], { count: 6, view: [3, 2], offset: 1 }),
          },
          { 0: STORAGES[0] },
        ),
      },
      { all: [1, 2, 3, 4, 5, 6], part: [4, 5], inside: [5] },
    ],
    [
      "a transposed view",
      "PyTorch",
      { "a.pt": made.torchZip({ t: torchTensorCall("0", [3, 2], { stride: [1, 3], count: 6 }) }, STORAGES) },
      { t: [1, 4, 2, 5, 3, 6] },
    ],
    ["DCP", "PyTorch DCP", made.dcpFolder(), { w: [0, 1, 2, 3, 4, 5, 6, 7] }, { epoch: 3 }, ""],
    [
      "MindSpore with a checksum and a split tensor",
      "MindSpore ckpt",
      {
        "a.ckpt": made.mindsporeFile(
          [
            ["w", [2, 2], "Float32", floats(1, 2, 3)],
            ["w", [2, 2], "Float32", floats(4)],
            ["note", [2], "str", Uint8Array.of(0x68, 0, 0, 0, 0x69, 0, 0, 0)],
          ],
          { crc: true },
        ),
      },
      { w: [1, 2, 3, 4] },
      { note: "hi" },
    ],
    [
      "MindSpore ranks, the newest step of each",
      "MindSpore ranks",
      RANKS,
      {
        rows: [0, 1, 2, 3],
        both: [0, 1, 2, 3],
        "moments.both": [0, 10, 20, 30],
        sharded: [0, 0, 1, 1, 2, 2, 3, 3],
        stepped: [0, 4, 1, 5],
        alone: [3],
      },
      {},
      "",
    ],
    [
      "Paddle, columns first and cut into parts",
      "Paddle",
      {
        "a.pdparams": pickleOf({
          "fc.w": numpyCall([2, 2], floats(1, 2, 3, 4), { columnMajor: true }),
          "big@@.0": numpyCall([3], floats(1, 2, 3)),
          "big@@.1": numpyCall([1], floats(4)),
          "UnpackBigParamInfor@@": { big: { OriginShape: new Tuple(2, 2), slices: ["big@@.0", "big@@.1"] } },
          "StructuredToParameterName@@": { "fc.w": "linear_0.w_0" },
        }),
      },
      { "fc.w": [1, 3, 2, 4], big: [1, 2, 3, 4] },
      { "StructuredToParameterName@@": { "fc.w": "linear_0.w_0" } },
    ],
    [
      "Paddle of protocol 2, whose long arrays are text",
      "Paddle",
      {
        "a.pdopt": pickleOf(
          { w: numpyCall([20000], floats(...Array.from({ length: 20000 }, (_, i) => i)), { asText: true }) },
          2,
        ),
      },
      { w: Array.from({ length: 20000 }, (_, i) => i) },
    ],
    ["TF.js", "TF.js", made.tfjsFolder(), { "dense/kernel/m": [5, 6, 7, 8] }, { format: "layers-model" }, "model.json"],
    ["TF.js by its folder", "TF.js", made.tfjsFolder(), { "dense/kernel": [1, 2, 3, 4] }, {}, ""],
    [
      "safetensors",
      "safetensors",
      { "a.bin": made.safetensorsFile([{ name: "w", shape: [2], data: floats(1, 2) }], { by: "me" }) },
      { w: [1, 2] },
      { by: "me" },
    ],
    [
      "a Hugging Face set",
      "sharded safetensors",
      {
        "model.safetensors.index.json": index("part.safetensors"),
        "part.safetensors": made.safetensorsFile([{ name: "w", shape: [1], data: floats(5) }]),
      },
      { w: [5] },
      {},
      "",
    ],
    [
      "safetensors shards of PyTorch, replicas once",
      "safetensors shards",
      {
        "a.safetensors": shard("w", [0, 0], [1, 2], 1, 2),
        "b.safetensors": shard("w", [1, 0], [1, 2], 3, 4),
        "c.safetensors": shard("w", [1, 0], [1, 2], 3, 4),
      },
      { w: [1, 2, 3, 4] },
      {},
      "",
    ],
  ])("reads %s", async (_, format, files, tensors, values = {}, path) => {
    const source = await openFiles(files, path);
    expect(source.format).toBe(format);
    for (const [key, expected] of Object.entries(tensors))
      expect([key, await readFloats(source, key)]).toEqual([key, expected]);
    expect(source.values).toMatchObject(values);
    const { step, unreadable = new Map(), skipped = [] } = source;
    const held = [...source.tensors.values()].map(({ name, dtype, shape }) => `${name} ${dtype} [${shape}]`).sort();
    expect({ held, values: source.values, step, unreadable: [...unreadable], skipped }).toMatchSnapshot();
    await source.close();
  });

  it.each([false, true])("reads Keras archives and weights (compressed: %s)", async (compressed) => {
    const { keras, h5 } = await made.kerasFile({ compressed });
    for (const files of [{ "a.keras": keras }, { "a.weights.h5": h5 }] as unknown as Files[]) {
      const source = await openFiles(files);
      expect(await readFloats(source, "layers/dense/vars/0")).toEqual([1, 2, 3, 4, 5, 6]);
      expect(source.tensors.get("optimizer/vars/0")).toMatchObject({ dtype: "I64", shape: [] });
      await source.close();
    }
  });
});

describe("opening", () => {
  const big = new Uint8Array(4 << 20);
  const count = big.length / 4;
  it.each<[string, Files, string]>([
    ["PyTorch", { "a.pt": made.torchZip({ w: torchTensorCall("0", [count]) }, { 0: big }) }, "a.pt"],
    ["legacy PyTorch", { "a.pt": made.legacyTorch({ w: torchTensorCall("0", [count]) }, { 0: big }) }, "a.pt"],
    ["MindSpore", { "a.ckpt": made.mindsporeFile([["w", [count], "Float32", big]]) }, "a.ckpt"],
    ["Paddle", { "a.pdparams": pickleOf({ w: numpyCall([count], big) }) }, "a.pdparams"],
    [
      "safetensors",
      { "a.safetensors": made.safetensorsFile([{ name: "w", shape: [count], data: big }]) },
      "a.safetensors",
    ],
  ])("%s reads no tensors, and a slice no more than it must", async (format, files, name) => {
    const fileSystem = memoryFiles(files);
    const source = await openForeign(`/root/${name}`, fileSystem);
    expect(fileSystem.bytesRead()).toBeLessThan(300_000);
    const [box] = source.tensors.get("w")!.boxes;
    const before = fileSystem.bytesRead();
    await box!.read(new Uint8Array(64), 1 << 20);
    // Only zips have a checksum for each member: it is compared once, before anything is given out.
    expect(fileSystem.bytesRead() - before).toBe(format === "PyTorch" ? big.length + 64 : 64);
    await source.close();
  });

  it("HDF5 fetches the pages that it reads", async () => {
    const { h5 } = await made.kerasFile({ rows: 100_000 });
    const fileSystem = memoryFiles({ "a.h5": h5 });
    const source = await openForeign("/root/a.h5", fileSystem);
    const [box] = source.tensors.get("layers/dense/vars/0")!.boxes;
    expect(box!.byteLength).toBe(1_200_000);
    await box!.read(new Uint8Array(64), 600_000);
    expect(fileSystem.bytesRead()).toBeLessThan(200_000);
    await source.close();
  });
});

it("rejects replicas in safetensors shards that hold different bytes, by the tensor's name, once they are read", async () => {
  const files = {
    "a.safetensors": shard("w", [0, 0], [1, 2], 1, 2),
    "b.safetensors": shard("w", [1, 0], [1, 2], 3, 4),
    "c.safetensors": shard("w", [1, 0], [1, 2], 3, 5),
  };
  const source = await openFiles(files, "");
  expect(await expectCode("BAD_STATE", readFloats(source, "w"))).toMatch(/b.safetensors and c.safetensors hold "w"/);
  await source.close();
});

describe("errors", () => {
  const evil = new Call(new Name("os", "system"), ["true"]);
  const keyed = (size: number[]): Uint8Array => made.torchZip({ w: torchTensorCall("0", size) }, { 0: floats(1, 2) });
  const encrypted = Uint8Array.of(0xd8, 0x5e, 0x3a, 0x7f, 0, 0, 0, 0);
  const flipped = (bytes: Uint8Array, at: number): Uint8Array => bytes.map((byte, i) => (i === at ? byte ^ 1 : byte));
  const withCrc = made.mindsporeFile([["w", [2], "Float32", floats(1, 2)]], { crc: true });
  const { "rank_3/net-9_100.ckpt": _a, "rank_3/net-10_2.ckpt": _b, ...threeRanks } = RANKS;
  const { "ckpt_strategy.ckpt": _c, ...noStrategy } = RANKS;

  const outside = torchTensorCall("0", [2], { count: 6, view: [5, 2] });
  const beyond = made.legacyTorch({ outside }, { 0: STORAGES[0] });

  it.each<[string, string, Files, string]>([
    [
      "a pointer of Git LFS",
      "UNSUPPORTED",
      { "a.pt": Buffer.from("version https://git-lfs.github.com/spec/v1\n") },
      "a.pt",
    ],
    [
      "a pointer in the place of safetensors",
      "UNSUPPORTED",
      { "a.safetensors": Buffer.from("version https://git-lfs") },
      "a.safetensors",
    ],
    ["a page of HTML", "UNSUPPORTED", { "a.pt": Buffer.from("<!DOCTYPE html><html>") }, "a.pt"],
    ["a SavedModel", "UNSUPPORTED", { "saved_model.pb": Buffer.from("x") }, ""],
    ["a plain pickle", "UNSUPPORTED", { "a.pkl": pickleOf({ a: 1 }) }, "a.pkl"],
    ["a gzip", "UNSUPPORTED", { "a.pt.gz": Uint8Array.of(0x1f, 0x8b, 8, 0) }, "a.pt.gz"],
    ["a zip of anything", "UNSUPPORTED", { "a.zip": zipOf({ "a.txt": Buffer.from("x") }) }, "a.zip"],
    ["a torch file that calls os.system", "REFUSED", { "a.pt": made.torchZip(evil, {}) }, "a.pt"],
    ["a legacy torch file that calls os.system", "REFUSED", { "a.pt": made.legacyTorch(evil, {}) }, "a.pt"],
    ["a Paddle file that calls os.system", "REFUSED", { "a.pdparams": pickleOf(evil) }, "a.pdparams"],
    ["DCP metadata that calls os.system", "REFUSED", { ".metadata": pickleOf(evil) }, ""],
    ["a DCP chunk outside of the folder", "REFUSED", made.dcpFolder({ path: "../__0_0.distcp" }), ""],
    ["a legacy storage that leaves the one it is a part of", "CORRUPT", { "a.pt": beyond }, "a.pt"],
    ["a DCP chunk at an absolute path", "REFUSED", made.dcpFolder({ path: "/etc/passwd" }), ""],
    ["TF.js weights outside of the folder", "REFUSED", made.tfjsFolder({ paths: ["../weights.bin"] }), ""],
    ["an index that leaves the folder", "REFUSED", { "m.safetensors.index.json": index("../w.safetensors") }, ""],
    ["an index of an absolute path", "REFUSED", { "m.safetensors.index.json": index("/etc/passwd") }, ""],
    ["a storage that is not there", "MISSING", { "a.pt": made.torchZip({ w: torchTensorCall("9", [1]) }, {}) }, "a.pt"],
    ["a tensor larger than its storage", "CORRUPT", { "a.pt": keyed([3]) }, "a.pt"],
    ["a DCP folder without its chunks", "MISSING", { ".metadata": made.dcpFolder()[".metadata"]! }, ""],
    ["an encrypted MindSpore file", "UNSUPPORTED", { "a.ckpt": encrypted }, "a.ckpt"],
    [
      "two tensors of one name",
      "DUPLICATE",
      {
        "a.ckpt": made.mindsporeFile([
          ["w", [1], "Float32", floats(1)],
          ["v", [1], "Float32", floats(1)],
          ["w", [1], "Float32", floats(1)],
        ]),
      },
      "a.ckpt",
    ],
    [
      "a MindSpore tensor of too few bytes",
      "CORRUPT",
      { "a.ckpt": made.mindsporeFile([["w", [3], "Float32", floats(1)]]) },
      "a.ckpt",
    ],
    ["three ranks of four", "MISSING", threeRanks, ""],
    ["ranks without a strategy", "MISSING", noStrategy, ""],
    [
      "a Keras archive without weights",
      "MISSING",
      { "a.keras": zipOf({ "config.json": Buffer.from("{}") }) },
      "a.keras",
    ],
    ["shards of ours without their manifest", "MISSING", { "rank-00000.safetensors": shard("w", [0], [1], 1) }, ""],
    ["a strategy file by itself", "CORRUPT", { "s.ckpt": RANKS["ckpt_strategy.ckpt"]! }, "s.ckpt"],
    ["JSON that is no model", "UNSUPPORTED", { "package.json": Buffer.from('{"name":"app"}') }, "package.json"],
    ["TF.js with weights that are no list", "CORRUPT", { "m.json": Buffer.from('{"weightsManifest":1}') }, "m.json"],
    ["an unknown file", "UNSUPPORTED", { "a.xyz": Buffer.from("hello") }, "a.xyz"],
    ["nothing at all", "MISSING", {}, "a.pt"],
  ])("meet %s", async (_, code, files, name) => {
    await expectCode(code as never, openFiles(files, name));
  });

  it.each([[[4]], [[1, 4]], [[2, 2, 1]]])(
    "meet a DCP chunk of %s where its metadata say [2, 2], when it is read",
    async (stored) => {
      const source = await openFiles(made.dcpFolder({ stored }), "");
      await expectCode("CORRUPT", readFloats(source, "w"));
    },
  );

  it("meet a MindSpore file whose bytes do not match its checksum, when it is read", async () => {
    const source = await openFiles({ "a.ckpt": flipped(withCrc, withCrc.length - 20) });
    await expectCode("CORRUPT", readFloats(source, "w"));
  });

  it("meet a pickle whose lists refer to each other without end", async () => {
    const doubling = [
      0x5d,
      0x94,
      ...Array.from({ length: 60 }, (_, i) => [0x5d, 0x94, 0x28, 0x68, i, 0x68, i, 0x65]).flat(),
    ];
    const bomb = Uint8Array.of(0x80, 4, ...doubling, 0x2e);
    await expectCode("CORRUPT", openFiles({ "a.pt": made.torchZipOf(bomb, {}) }));
  });
});
