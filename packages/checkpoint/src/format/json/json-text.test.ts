import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../../testing/disks/memory-file-system";
import { expectCode } from "../../../testing/expect-code";
import { parseSafetensorsHeader, readSafetensorsHeader } from "../safetensors";
import { encodeSafetensorsHeader } from "../safetensors-writer";
import { openRandomAccess } from "../source";
import { problemOfJson } from "./json-text";

describe("JSON text", () => {
  it.each<[string, number, RegExp | undefined]>([
    ['{"a":[{"b":1}]}', 3, undefined],
    ['{"a":[{"b":1}]}', 2, /deeper than 2/],
    ['{"a":1,"a":2}', 9, /occurs twice/],
    ['{"a":1,"\\u0061":2}', 9, /occurs twice/],
    ['{"a\\\\":1,"a":"a","b":{"a":1}}', 9, undefined],
    ['{"a":"[[[[", "b":"\\"{"}', 1, undefined],
    ['{"a":"no end', 9, undefined],
    ["[".repeat(10_000_000), 200, /deeper/],
  ])("%.30s to depth %i", (text, depth, problem) => {
    const found = problemOfJson(text, depth);
    if (problem) expect(found).toMatch(problem);
    else expect(found).toBeUndefined();
  });
});

/** What a header says of a tensor without elements. */
const EMPTY = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}';

describe("safetensors headers", () => {
  it("of many tensors are read back: a string of 8 MB overflows no stack", () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `layers.${i}.${"with.a.long.name.".repeat(50)}`);
    const tensors = names.map((name) => ({ name, dtype: "F32" as const, shape: [2] }));
    const offsets = JSON.stringify(Object.fromEntries(names.map((name) => [name, { saved_offsets: [0] }])));
    const { bytes, begins } = encodeSafetensorsHeader(tensors, { DCP_SHARDING_INFO: offsets });
    const { entries } = parseSafetensorsHeader(bytes.subarray(8), begins.at(-1)!, "w");
    expect(entries).toEqual(tensors.map((tensor, i) => ({ ...tensor, begin: begins[i], end: begins[i + 1] })));
  });

  const headerOf = async (text: string) => parseSafetensorsHeader(new TextEncoder().encode(text), 1 << 30, "f");
  it.each([
    ["", "no {"],
    ["[]", "no {"],
    ["{", "no }"],
    ["{]", "no }"],
    ["{} x", "no }"],
    [`{"a":1`, "no }"],
    [`{"a`, "no }"],
    ["{,}", "JSON"],
    [`{"a":{},}`, "JSON"],
    [`{"a":[}}`, "JSON"],
    [`{"a":[1}]}`, "JSON"],
    [`{"${"a".repeat(70_000)}":${EMPTY},}`, "missing"],
    [`{"a":{"shape":[${"0,".repeat(600_000)}0]}}`, "too long"],
    [`{"b":{},"a":{"shape":[${"0,".repeat(600_000)}0]}}`, "too long"],
    [`{"__metadata__":{${Array.from({ length: 100_001 }, (_, i) => `"${i}":""`)}}}`, "100000 keys"],
    [`{"a":${EMPTY},"${"x".repeat(70_000)}":${EMPTY},"a":${EMPTY}}`, "twice"],
  ])("that are no object of tensors are rejected: %#", async (text, reason) => {
    expect(await expectCode("CORRUPT", headerOf(text))).toContain(reason);
  });

  it("of metadata that is most of the file are read", () => {
    const { bytes } = encodeSafetensorsHeader([], { long: 'x"'.repeat(2 << 20) });
    expect(parseSafetensorsHeader(bytes.subarray(8), bytes.length, "f").metadata.long).toHaveLength(4 << 20);
  });

  it("of 13 MiB are read, however short the file, unless the reader allows less", async () => {
    const disk = new MemoryFileSystem();
    await disk.makeFolder("/f");
    const file = await disk.open("/f/w", "create");
    const header = new Uint8Array(8 + (13 << 20)).fill(0x20);
    new DataView(header.buffer).setBigUint64(0, BigInt(13 << 20), true);
    header.set(new TextEncoder().encode("{}"), 8);
    await file.write(header, 0);
    const access = await openRandomAccess(disk, "/f/w");
    expect((await readSafetensorsHeader(access)).entries).toEqual([]);
    const rejected = readSafetensorsHeader(access, { maxHeaderBytes: 12 << 20 });
    expect(await expectCode("REFUSED", rejected)).toMatch(/maxHeaderBytes/);
  });
});
