/** Folders of safetensors: what an index and the parts of a tensor may say, and what is reported. */
import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import { floats, safetensorsFile } from "../../../testing/files/made-files";
import { readFloats } from "../../../testing/read-tensor";
import type { TensorSource } from "../../format/source";
import { openForeign } from "../registry";

type Files = Record<string, Uint8Array>;

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const file = (name: string, shape: number[], ...values: number[]) =>
  safetensorsFile([{ name, shape, data: floats(...values) }]);
const sharded = (sharding: unknown, shape: number[], ...values: number[]) =>
  safetensorsFile([{ name: "w", shape, data: floats(...values) }], { DCP_SHARDING_INFO: JSON.stringify(sharding) });
const part = (offset: unknown, shape: number[], ...values: number[]) =>
  sharded({ w: { saved_offsets: offset } }, shape, ...values);

/** The same file, but with another dtype of the same width in its header. */
const as = (dtype: string, bytes: Uint8Array) =>
  Buffer.from(Buffer.from(bytes).toString("latin1").replace('"F32"', `"${dtype}"`), "latin1");

async function open(files: Files, path = "/root"): Promise<TensorSource> {
  return openForeign(path, memoryFiles(files));
}

describe("an index", () => {
  const set = (index: unknown, files: Files = { "a.safetensors": file("w", [1], 5) }): Files => ({
    "m.safetensors.index.json": json(index),
    ...files,
  });

  it.each([
    ["no weight_map", {}],
    ["an empty weight_map", { weight_map: {} }],
    ["a file that is a number", { weight_map: { w: 3 } }],
    ["a number beside a file", { weight_map: { w: "a.safetensors", v: 3 } }],
  ])("with %s is reported", async (_, index) => {
    expect(await expectCode("CORRUPT", open(set(index)))).toMatch(/weight_map must map tensors to files/);
  });

  it("that names a tensor its file lacks is reported with both names", async () => {
    const index = { weight_map: { w: "a.safetensors", v: "a.safetensors" } };
    expect(await expectCode("MISSING", open(set(index)))).toMatch(/a\.safetensors does not hold "v"/);
  });

  it("gives its metadata as values, without the sizes of files", async () => {
    const metadata = { total_size: 4, total_parameters: 1, by: "me" };
    expect((await open(set({ metadata, weight_map: { w: "a.safetensors" } }))).values).toEqual({ by: "me" });
  });

  it("leads to tensors of unknown dtypes, which are listed", async () => {
    const files = { "a.safetensors": as("F4x", file("w", [1], 5)) };
    const source = await open(set({ weight_map: { w: "a.safetensors" } }, files));
    expect([[...source.tensors], [...source.unreadable!]]).toEqual([[], [["w", 'it has the dtype "F4x"']]]);
  });

  it("beside another one is chosen by its path alone", async () => {
    const index = json({ weight_map: { w: "a.safetensors" } });
    const other = json({ weight_map: { w: "b.safetensors" } });
    const files = {
      "a.safetensors": file("w", [1], 5),
      "b.safetensors": file("w", [1], 6),
      "a.safetensors.index.json": index,
      "b.safetensors.index.json": other,
    };
    expect(await expectCode("BAD_ARGUMENT", open(files))).toMatch(/a\.safetensors\.index\.json, b\.safetensors/);
    expect(await readFloats(await open(files, "/root/b.safetensors.index.json"), "w")).toEqual([6]);
  });
});

describe("shards in a folder", () => {
  it("may be cut along any dimension, unevenly, and along two", async () => {
    const columns = { "a.safetensors": part([0, 0], [2, 2], 1, 2, 4, 5), "b.safetensors": part([0, 2], [2, 1], 3, 6) };
    const both = {
      "a.safetensors": part([0, 0], [1, 1], 1),
      "b.safetensors": part([0, 1], [1, 2], 2, 3),
      "c.safetensors": part([1, 0], [1, 1], 4),
      "d.safetensors": part([1, 1], [1, 2], 5, 6),
    };
    for (const files of [columns, both]) {
      const source = await open(files);
      expect(source.tensors.get("w")!.shape).toEqual([2, 3]);
      expect(await readFloats(source, "w")).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });

  it("without offsets hold whole tensors, in the order of their names, whatever else is there", async () => {
    const source = await open({
      "notes.txt": Buffer.from("no tensors"),
      "b.safetensors": file("v", [1], 3),
      "a.safetensors": file("w", [2], 1, 2),
    });
    expect([...source.tensors.keys()]).toEqual(["w", "v"]);
    expect([await readFloats(source, "w"), await readFloats(source, "v")]).toEqual([[1, 2], [3]]);
  });

  it.each([
    ["dtypes", as("I32", part([1], [1], 2))],
    ["numbers of dimensions", part([1, 0], [1, 1], 2)],
  ])("whose parts of a tensor have other %s are reported by the tensor's name", async (_, other) => {
    const files = { "a.safetensors": part([0], [1], 1), "b.safetensors": other };
    expect(await expectCode("BAD_STATE", open(files))).toMatch(/a part of "w" is \w+ \[[\d,]+\], another is F32 \[1\]/);
  });

  it.each([["text"], [{}], [[-1]], [[0, -1]], [undefined]])("with the offsets %j are reported", async (offset) => {
    const files = { "a.safetensors": part(offset, [1, 1], 1) };
    expect(await expectCode("CORRUPT", open(files))).toMatch(/DCP_SHARDING_INFO of "w" is no list/);
  });

  it("read a replica of the first part once", async () => {
    const source = await open({
      "a.safetensors": part([0], [1], 1),
      "b.safetensors": part([0], [1], 1),
      "c.safetensors": part([1], [1], 2),
    });
    expect([source.tensors.get("w")!.boxes.length, await readFloats(source, "w")]).toEqual([2, [1, 2]]);
  });

  it.each(["rank-00000.safetensors", "rank-00001-0123456789ab.safetensors"])(
    "of a save that did not end are reported: %s",
    async (name) => {
      const files = { [name]: part([0], [1], 1), "x.safetensors": part([1], [1], 2) };
      expect(await expectCode("MISSING", open(files))).toMatch(/never saved whole/);
    },
  );

  it.each(["my-rank-00000.safetensors", "rank-00000-part.safetensors"])("of others may be named %s", async (name) => {
    expect(await readFloats(await open({ [name]: part([0], [1], 1) }), "w")).toEqual([1]);
  });
});
