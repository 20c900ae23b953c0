import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { random } from "../../testing/fixtures";
import { parseSafetensorsHeader, readSafetensorsHeader } from "./safetensors";
import { encodeSafetensorsHeader } from "./safetensors-writer";
import { openRandomAccess } from "./source";

const parse = (json: string, dataBytes: number) => {
  const header = new TextEncoder().encode(json);
  return parseSafetensorsHeader(header, 8 + header.length + dataBytes, "file");
};
const entry = (dtype: string, shape: string, begin: number, end: number) =>
  `{"dtype":"${dtype}","shape":${shape},"data_offsets":[${begin},${end}]}`;

describe("a safetensors header", () => {
  it("round-trips, in the order of the bytes, the data at a multiple of 64", () => {
    const tensors = [
      { name: "a", dtype: "F64", shape: [2] },
      { name: 'quote " and \u00fcnicode', dtype: "BF16", shape: [3, 1] },
      { name: "empty", dtype: "C64", shape: [0, 4] },
      { name: "scalar", dtype: "BOOL", shape: [] },
    ] as const;
    const { bytes, begins } = encodeSafetensorsHeader(tensors, { format: "pt" });
    const entries = tensors.map((tensor, i) => ({ ...tensor, begin: begins[i], end: begins[i + 1] }));
    expect(bytes.length % 64).toBe(0);
    const parsed = parseSafetensorsHeader(bytes.subarray(8), bytes.length + 23, "file");
    expect(parsed).toEqual({ entries, unreadable: new Map(), metadata: { format: "pt" }, byteLength: bytes.length });
  });

  it("has its tensors in any order, empty ones too", () => {
    const lists = fc.array(fc.nat(2), { minLength: 1, maxLength: 6 });
    const orders = fc.infiniteStream(fc.nat(5));
    fc.assert(
      fc.property(lists, orders, (lengths, order) => {
        let end = 0;
        const entries = lengths.map((length, i) => {
          end += length;
          return `"t${i}":${entry("U8", `[${length}]`, end - length, end)}`;
        });
        for (const i of entries.keys()) entries.push(...entries.splice(order.next().value! % entries.length, i % 2));
        const parsed = parse(`{${entries.join()}}`, end).entries.map(({ name, shape }) => [name, ...shape]);
        expect(parsed.sort()).toEqual(lengths.map((length, i) => [`t${i}`, length]));
      }),
    );
  });

  it.each<[string, string, number, string]>([
    ["no JSON", "{", 0, "CORRUPT"],
    ["no object", "[]", 0, "CORRUPT"],
    ["a space before {", " {}", 0, "CORRUPT"],
    ["a key twice", `{"w":${entry("U8", "[1]", 0, 1)},"w":${entry("U8", "[1]", 0, 1)}}`, 1, "CORRUPT"],
    [
      "a key twice, spelled differently",
      `{"w":${entry("U8", "[1]", 0, 1)},"\\u0077":${entry("U8", "[1]", 0, 1)}}`,
      1,
      "CORRUPT",
    ],
    ["a member twice", `{"w":{"dtype":"U8","shape":[1],"shape":[2],"data_offsets":[0,2]}}`, 2, "CORRUPT"],
    [
      "an overlap with a tensor of an unknown dtype",
      `{"v":${entry("F4", "[2]", 0, 2)},"w":${entry("U8", "[1]", 1, 2)}}`,
      2,
      "CORRUPT",
    ],
    ["a negative length", `{"w":${entry("U8", "[-1]", 0, 1)}}`, 1, "CORRUPT"],
    ["a fractional length", `{"w":${entry("U8", "[1.5]", 0, 1)}}`, 1, "CORRUPT"],
    ["a shape that overflows", `{"w":${entry("U8", "[4294967296,4294967296]", 0, 1)}}`, 1, "CORRUPT"],
    ["too few bytes for its shape", `{"w":${entry("F32", "[2]", 0, 4)}}`, 4, "CORRUPT"],
    ["offsets backwards", `{"w":${entry("U8", "[1]", 1, 0)}}`, 1, "CORRUPT"],
    ["a hole at the start", `{"w":${entry("U8", "[1]", 1, 2)}}`, 2, "CORRUPT"],
    ["a hole between", `{"v":${entry("U8", "[1]", 0, 1)},"w":${entry("U8", "[1]", 2, 3)}}`, 3, "CORRUPT"],
    ["an overlap", `{"v":${entry("U8", "[2]", 0, 2)},"w":${entry("U8", "[2]", 1, 3)}}`, 3, "CORRUPT"],
    ["bytes after the last tensor", `{"w":${entry("U8", "[1]", 0, 1)}}`, 2, "CORRUPT"],
    ["a shorter file", `{"w":${entry("U8", "[4]", 0, 4)}}`, 3, "CORRUPT"],
    ["metadata that is no text", `{"__metadata__":{"a":1}}`, 0, "CORRUPT"],
  ])("is rejected with %s", (_, json, dataBytes, code) => {
    expect(() => parse(json, dataBytes)).toThrow(expect.objectContaining({ code }));
  });

  it("keeps tensors of unknown dtypes apart, and reads the others", () => {
    const json = `{"q":${entry("F4", "[2]", 0, 1)},"p":${entry("toString", "[9]", 1, 2)},"w":${entry("U8", "[1]", 2, 3)}}`;
    const { entries, unreadable } = parse(json, 3);
    expect(entries.map(({ name }) => name)).toEqual(["w"]);
    expect([...unreadable]).toEqual([
      ["q", "F4"],
      ["p", "toString"],
    ]);
  });

  it("is rejected where it is no UTF-8", () => {
    const header = new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    expect(() => parseSafetensorsHeader(header, 15, "file")).toThrow(expect.objectContaining({ code: "CORRUPT" }));
  });

  it.each<[string, number[]]>([
    ["shorter than 8 bytes", [1, 2, 3]],
    ["announcing more than it has", [9, 0, 0, 0, 0, 0, 0, 0, 0x7b, 0x7d]],
    ["announcing 2^63 bytes", [0, 0, 0, 0, 0, 0, 0, 0x80, 0x7b, 0x7d]],
  ])("of a file %s is rejected before anything is allocated", async (_, bytes) => {
    const fileSystem = new MemoryFileSystem();
    await (await fileSystem.open("/file", "create")).write(Uint8Array.from(bytes), 0);
    const file = await openRandomAccess(fileSystem, "/file");
    await expect(readSafetensorsHeader(file)).rejects.toMatchObject({ code: "CORRUPT" });
  });

  it("of any bytes is either read or rejected by code", () => {
    const { bytes } = encodeSafetensorsHeader([{ name: "w", dtype: "F32", shape: [2, 3] }], { a: "b" });
    const next = random(1);
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 6 }), (edits) => {
        const changed = bytes.slice(8);
        for (const edit of edits) changed[edit % changed.length] = next() & 0xff;
        try {
          const { entries, unreadable } = parseSafetensorsHeader(changed, bytes.length + 24, "file");
          const read = entries.reduce((sum, { begin, end }) => sum + end - begin, 0);
          expect([read, unreadable.size]).toEqual(unreadable.size === 0 ? [24, 0] : [0, 1]);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(CORRUPT|UNSUPPORTED)$/) });
        }
      }),
      { seed: 10, numRuns: 5000 },
    );
  });
});
