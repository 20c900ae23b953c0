// Each element type as PyTorch itself writes it: what is exchanged both when it is read and when it is written survives a round trip.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { dcpFolder } from "../../../testing/files/made-files";
import { Name } from "../../../testing/files/pickles";
import { EXPECTED, torchFile } from "../../../testing/files/torch-files";
import { scratchFolder } from "../../../testing/fixtures";
import { openFiles } from "../../../testing/open-files";
import { readTensor } from "../../../testing/read-tensor";
import { convertCheckpoint } from "../../convert/convert";
import type { StoredDType } from "../../format/dtype";
import type { TensorSource } from "../../format/source";
import { localFileSystem } from "../../platform/local";
import { openForeign } from "../registry";

const scratch = scratchFolder();

/** PyTorch's names, and safetensors' for the same. */
const NAMES: Readonly<Record<string, StoredDType>> = {
  float32: "F32",
  float64: "F64",
  float16: "F16",
  bfloat16: "BF16",
  float8_e4m3fn: "F8_E4M3",
  float8_e5m2: "F8_E5M2",
  float8_e4m3fnuz: "F8_E4M3FNUZ",
  float8_e5m2fnuz: "F8_E5M2FNUZ",
  float8_e8m0fnu: "F8_E8M0",
  int64: "I64",
  int32: "I32",
  int16: "I16",
  int8: "I8",
  uint64: "U64",
  uint32: "U32",
  uint16: "U16",
  uint8: "U8",
  bool: "BOOL",
  complex64: "C64",
};

const dtypesOf = ({ tensors }: TensorSource) =>
  Object.fromEntries([...tensors].map(([name, { dtype }]) => [name, dtype]));

async function contentsOf(path: string) {
  const source = await openForeign(path, localFileSystem);
  const bytes: Record<string, number[]> = {};
  for (const name of source.tensors.keys()) bytes[name] = [...(await readTensor(source, name))];
  await source.close();
  return { dtypes: dtypesOf(source), bytes };
}

describe("a .pt of all element types", () => {
  const all = { dtypes: NAMES, bytes: EXPECTED["dtypes.pt"] };

  it("of PyTorch is read", async () => expect(await contentsOf(torchFile("dtypes.pt"))).toEqual(all));

  it.each(["pt", "dcp", "safetensors"] as const)("is written as %s", async (to) => {
    const there = `${scratch.path}/${to === "dcp" ? "dcp" : `there.${to}`}`;
    await convertCheckpoint(torchFile("dtypes.pt"), there, { to });
    expect(await contentsOf(there)).toEqual(all);
  });
});

describe("DCP's .metadata", () => {
  it.each([
    ["of today", "dtypes.metadata"],
    ["of torch 2.0 to 2.2, whose properties are of another class", "dtypes_older.metadata"],
  ])("%s has all element types", async (_, name) => {
    expect(dtypesOf(await openFiles({ ".metadata": readFileSync(torchFile(name)) }, ""))).toEqual(NAMES);
  });

  it.each(["bfloat16", "float8_e5m2fnuz"])("whose properties are a dict has %s", async (name) => {
    const files = dcpFolder({ properties: { requires_grad: false, dtype: new Name("torch", name) } });
    expect(dtypesOf(await openFiles(files, ""))).toEqual({ w: NAMES[name] });
  });
});
