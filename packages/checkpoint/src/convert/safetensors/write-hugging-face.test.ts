import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { floats, safetensorsFile, torchTensorCall, torchZip } from "../../../testing/files/made-files";
import { scratchFolder } from "../../../testing/fixtures";
import { readFloats } from "../../../testing/read-tensor";
import { openSource } from "../../read/open";
import { saveCheckpoint } from "../../save/save";
import { convertCheckpoint } from "../convert";

const scratch = scratchFolder();
const at = (name: string): string => join(scratch.path, name);

async function save(): Promise<void> {
  const part = (count: number) => ({
    dtype: "F32",
    shape: [count],
    data: Float32Array.from({ length: count }, (_, i) => count + i),
  });
  await saveCheckpoint(at("run"), {
    step: 1,
    tensors: { a: part(4), b: part(5), c: part(100), d: part(6), e: part(7) },
  });
}

describe("Hugging Face's sets", () => {
  it("are cut by size, a large tensor alone, with an index that its readers take", async () => {
    await save();
    const result = await convertCheckpoint(at("run"), at("set"), { to: "safetensors", maxShardSize: 40 });
    expect(result.tensors).toBe(5);
    const index = JSON.parse(readFileSync(join(at("set"), "model.safetensors.index.json"), "utf8"));
    const file = (i: number) => `model-0000${i}-of-00004.safetensors`;
    expect(index).toEqual({
      metadata: { total_size: 488 },
      weight_map: { a: file(1), b: file(1), c: file(2), d: file(3), e: file(4) },
    });
    const source = await openSource(at("set"));
    expect(source.format).toBe("sharded safetensors");
    for (const [name, count] of Object.entries({ a: 4, b: 5, c: 100, d: 6, e: 7 })) {
      expect(await readFloats(source, name)).toEqual(Array.from({ length: count }, (_, i) => count + i));
    }
    await source.close();
  });

  it("keep the step, values and roles, by their index and as a folder", async () => {
    const one = { dtype: "F32", shape: [4], data: new Float32Array(4) };
    const tensors = { w: one, "w.exp_avg": one };
    await saveCheckpoint(at("a"), { step: 7, tensors, values: { epoch: 2 } });
    await convertCheckpoint(at("a"), at("two"), { to: "safetensors", maxShardSize: 16 });
    for (const path of ["two", "two/model.safetensors.index.json"]) {
      const source = await openSource(at(path));
      const { step, values, tensors: read } = source;
      expect([step, values]).toEqual([7, { epoch: 2 }]);
      expect(read.get("w.exp_avg")).toMatchObject({ role: "state", follows: "w" });
      await source.close();
    }
  });

  it("are one file without an index where all fits; names, dtype and patterns hold", async () => {
    await save();
    const options = { to: "safetensors", maxShardSize: 1000, names: ["a", "d"], dtype: "f16" } as const;
    await convertCheckpoint(at("run"), at("set"), options);
    expect(readdirSync(at("set"))).toEqual(["model.safetensors"]);
    const source = await openSource(join(at("set"), "model.safetensors"));
    expect([...source.tensors.values()].map(({ name, dtype }) => [name, dtype])).toEqual([
      ["a", "F16"],
      ["d", "F16"],
    ]);
    await source.close();
  });

  it.each(["one file", "a set"])("become the plain state dict that torch.load is to give: %s", async (what) => {
    const file = (name: string) => safetensorsFile([{ name, shape: [1], data: floats(1) }], { format: "pt" });
    const names = what === "a set" ? ["a", "b"] : ["a"];
    for (const name of names) writeFileSync(at(`${name}.safetensors`), file(name));
    const weight_map = Object.fromEntries(names.map((name) => [name, `${name}.safetensors`]));
    const index = { metadata: { total_size: 8, total_parameters: 2 }, weight_map };
    writeFileSync(at("model.safetensors.index.json"), JSON.stringify(index));
    const from = what === "a set" ? "model.safetensors.index.json" : "a.safetensors";
    await convertCheckpoint(at(from), at("out.pt"), { to: "pt" });
    const source = await openSource(at("out.pt"));
    expect([[...source.tensors.keys()], source.values]).toEqual([names, {}]);
    await source.close();
  });

  it("reject invalid sizes, other targets, and what is there", async () => {
    await save();
    await expectCode("BAD_ARGUMENT", convertCheckpoint(at("run"), at("x"), { to: "pt", maxShardSize: 10 }));
    await expectCode("DUPLICATE", convertCheckpoint(at("run"), at("run"), { to: "safetensors", maxShardSize: 10 }));
    expect(existsSync(at("x"))).toBe(false);
  });

  it("of PyTorch files are read by their index", async () => {
    const part = (name: string, ...values: number[]) =>
      torchZip({ [name]: torchTensorCall("0", [values.length]) }, { 0: floats(...values) });
    writeFileSync(at("pytorch_model-00001-of-00002.bin"), part("a", 1, 2));
    writeFileSync(at("pytorch_model-00002-of-00002.bin"), part("b", 3));
    const index = (b: string) =>
      writeFileSync(
        at("pytorch_model.bin.index.json"),
        JSON.stringify({ weight_map: { a: "pytorch_model-00001-of-00002.bin", b } }),
      );
    index("pytorch_model-00002-of-00002.bin");
    for (const path of [scratch.path, at("pytorch_model.bin.index.json")]) {
      const source = await openSource(path);
      expect([await readFloats(source, "a"), await readFloats(source, "b")]).toEqual([[1, 2], [3]]);
      await source.close();
    }
    index("pytorch_model-00001-of-00002.bin");
    await expectCode("MISSING", openSource(scratch.path));
    index("../b.bin");
    await expectCode("REFUSED", openSource(scratch.path));
  });

  it("leave out tensors of dtypes that are not known, when they are not asked for", async () => {
    const bytes = Buffer.from(
      safetensorsFile([
        { name: "w", shape: [1], data: floats(1) },
        { name: "q", shape: [1], data: floats(2) },
      ]),
    );
    const text = bytes.toString("latin1").replace('"q":{"dtype":"F32"', '"q":{"dtype":"F4x"');
    writeFileSync(at("a.safetensors"), Buffer.from(text, "latin1"));
    const source = await openSource(at("a.safetensors"));
    expect(await readFloats(source, "w")).toEqual([1]);
    expect([...source.unreadable!]).toEqual([["q", 'it has the dtype "F4x"']]);
    await source.close();
  });
});
