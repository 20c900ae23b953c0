import { describe, expect, it } from "vitest";
import { memoryFiles } from "../../../testing/disks/memory-files";
import { expectCode } from "../../../testing/expect-code";
import { floats } from "../../../testing/files/made-files";
import { npyOf, npzFile } from "../../../testing/files/numpy";
import { zipOf } from "../../../testing/files/zips";
import { randomBytes } from "../../../testing/fixtures";
import { openFiles } from "../../../testing/open-files";
import { readFloats, readTensor } from "../../../testing/read-tensor";
import { usingSource } from "../../../testing/using-source";
import { loadCheckpoint } from "../../operations";
import { openForeign } from "../registry";

const open = (...array: Parameters<typeof npyOf>) => openFiles({ "a.npy": npyOf(...array) });
const big = (bytes: Uint8Array, width: number) => {
  for (let at = 0; at < bytes.length; at += width) bytes.subarray(at, at + width).reverse();
  return bytes;
};

describe("NumPy's files", () => {
  it.each(["stored", "deflated"] as const)("that NumPy wrote are read, members %s", async (name) => {
    await usingSource(npzFile(name), async (source) => {
      expect(source.format).toBe("NumPy");
      expect(Array.from(source.tensors.values(), ({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
        ["fc.weight", "F32", [2, 3]],
        ["ü", "I64", []],
        ["mask", "BOOL", [2]],
      ]);
      expect(await readFloats(source, "fc.weight")).toEqual([0, 1, 2, 3, 4, 5]);
      expect([...(await readTensor(source, "ü"))]).toEqual([7, 0, 0, 0, 0, 0, 0, 0]);
    });
  });

  it.each([
    ["of version 2", npyOf("'<f4'", "(2, 2)", floats(1, 3, 2, 4), { version: 2 })],
    ["of version 3", npyOf("'<f4'", "(2, 2)", floats(1, 3, 2, 4), { version: 3 })],
    ["of Python 2", npyOf('"<f4"', "(2L, 2L)", floats(1, 3, 2, 4))],
    ["in columns", npyOf("'<f4'", "(2, 2)", floats(1, 2, 3, 4), { fortran: "True" })],
    ["big-endian", npyOf("'>f4'", "(2, 2)", big(floats(1, 3, 2, 4), 4))],
    ["big-endian in columns", npyOf("'>f4'", "(2, 2)", big(floats(1, 2, 3, 4), 4), { fortran: "True" })],
  ])("%s are read", async (_, bytes) => {
    const source = await openFiles({ "a.npy": bytes });
    expect(source.tensors.get("tensor")!.shape).toEqual([2, 2]);
    expect(await readFloats(source, "tensor")).toEqual([1, 3, 2, 4]);
  });

  it("hold halves of complex numbers in their own order, and parts of numbers can be read", async () => {
    const source = await open("'>c8'", "(1,)", big(floats(1, 2), 4));
    expect(await readFloats(source, "tensor")).toEqual([1, 2]);
    const part = new Uint8Array(3);
    await source.tensors.get("tensor")!.boxes[0]!.read(part, 3);
    expect(part).toEqual(floats(1, 2).subarray(3, 6));
  });

  it("list what is no array of numbers, and give the rest", async () => {
    const source = await openFiles({
      "a.npz": zipOf({
        "w.npy": npyOf("'<f4'", "(0, 3)", floats()),
        "o.npy": npyOf("'|O'", "(1,)", floats(1)),
        "r.npy": npyOf("[('descr', '<f4')]", "(1,)", floats(1)),
        "c.npy": npyOf("'<c16'", "(1,)", floats(1, 2, 3, 4)),
        "u.npy": npyOf("'<U3'", "(1,)", new Uint8Array(12)),
        "s.npy": npyOf("'|S3'", "(1,)", new Uint8Array(3)),
        "d.npy": npyOf("'<M8[ns]'", "(1,)", new Uint8Array(8)),
        "t.npy": npyOf("'<m8[s]'", "(1,)", new Uint8Array(8)),
        note: floats(),
      }),
    });
    expect([...source.tensors.keys()]).toEqual(["w"]);
    expect(Object.fromEntries(source.unreadable!)).toEqual({
      r: "it is an array of records",
      c: 'it is an array of "c16"',
    });
    expect(source.skipped!.map(({ name, what }) => [name, what])).toEqual([
      ["o", "an array of Python objects"],
      ["u", "an array of texts"],
      ["s", "an array of texts"],
      ["d", "an array of dates"],
      ["t", "an array of times"],
      ["note", "no array"],
    ]);
  });

  it("load past texts and dates", async () => {
    const fileSystem = memoryFiles({
      "a.npz": zipOf({ "w.npy": npyOf("'<f4'", "(1,)", floats(3)), "u.npy": npyOf("'<U1'", "(1,)", floats(0)) }),
    });
    const { tensors, skipped } = await loadCheckpoint("/root/a.npz", { fileSystem });
    expect([tensors.w!.tolist(), skipped]).toEqual([[3], [{ name: "u", what: "an array of texts" }]]);
  });

  it.each([
    ["stored", {}],
    ["deflated", { deflated: {} }],
  ])("are opened by their headers alone: %s", async (_, options) => {
    const numbers = Buffer.from(randomBytes(1 << 20, 1));
    const members = Object.fromEntries(
      ["a", "b", "c"].map((name) => [`${name}.npy`, npyOf("'<f4'", "(262144,)", numbers)]),
    );
    const bytes = zipOf(members, options);
    const fileSystem = memoryFiles({ "a.npz": bytes });
    const source = await openForeign("/root/a.npz", fileSystem);
    expect(fileSystem.bytesRead()).toBeLessThan(bytes.length / 4);
    expect(Buffer.compare(await readTensor(source, "c"), numbers)).toBe(0);
    await source.close();
    const damaged = Buffer.from(bytes);
    damaged[bytes.length >> 1]! ^= 1;
    const other = await openForeign("/root/a.npz", memoryFiles({ "a.npz": damaged }));
    await expectCode("CORRUPT", readTensor(other, "b"));
    await other.close();
  });

  it.each([
    ["more bytes than its shape has", npyOf("'<f4'", "(1,)", floats(1, 2))],
    ["fewer bytes", npyOf("'<f4'", "(3,)", floats(1, 2))],
    ["fewer bytes in columns", npyOf("'<f4'", "(3, 2)", floats(1, 2), { fortran: "True" })],
    ["a shape of no numbers", npyOf("'<f4'", "(a,)", floats(1))],
    ["a negative shape", npyOf("'<f4'", "(-1, -1)", floats(1))],
    ["no order", npyOf("'<f4'", "(1,)", floats(1), { fortran: "None" })],
    ["an unknown version", npyOf("'<f4'", "(1,)", floats(1), { version: 4 })],
    ["a header that is longer than the file", npyOf("'<f4'", "(1,)", floats(1)).subarray(0, 40)],
  ])("with %s are rejected", async (_, bytes) => {
    await expectCode("CORRUPT", openFiles({ "a.npy": bytes }));
  });
});
