import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { zipOf } from "../../../testing/files/zips";
import { memorySource, readBytes } from "../bytes/source";
import { openZip } from "./read";

const text = (value: string): Uint8Array => Buffer.from(value);
const open = (bytes: Uint8Array) => openZip(memorySource("test.zip", bytes));

describe("openZip", () => {
  it("finds stored members, and reads ranges of them", async () => {
    const members = await open(zipOf({ "a/data.pkl": text("hello"), "a/data/0": text("world!"), empty: text("") }));
    expect([...members.keys()]).toEqual(["a/data.pkl", "a/data/0", "empty"]);
    expect(Buffer.from(await readBytes(members.get("a/data/0")!, 1, 3)).toString()).toBe("orl");
    expect((await readBytes(members.get("empty")!, 0, 0)).length).toBe(0);
  });

  it("reads the long form of sizes and places (Zip64)", async () => {
    const members = await open(zipOf({ a: text("hello"), b: text("world!") }, { zip64: true }));
    expect(Buffer.from(await readBytes(members.get("b")!, 0, 6)).toString()).toBe("world!");
  });

  it.each(["../outside", "/absolute", "a/../../b", "C:/windows", "a\\b"])("rejects the name %s", async (name) => {
    await expectCode("REFUSED", open(zipOf({ [name]: text("x") })));
  });

  it("checks a member's checksum before the first byte of any part of it", async () => {
    const bytes = zipOf({ a: text("hello world") });
    bytes[30 + 1 + 8]! ^= 1;
    const members = await open(bytes);
    await expectCode("CORRUPT", readBytes(members.get("a")!, 0, 2));
    await expectCode("CORRUPT", readBytes(members.get("a")!, 0, 11));
  });

  it("rejects packed members, two of one name, and members that overlap", async () => {
    await expectCode("UNSUPPORTED", open(zipOf({ a: text("hello") }, { method: 8 })));
    const twice = Buffer.from(zipOf({ a: text("1"), b: text("2") }).map((byte) => (byte === 0x62 ? 0x61 : byte)));
    await expectCode("CORRUPT", open(twice));
    const overlap = Buffer.from(zipOf({ a: text("1"), b: text("2") }));
    overlap.writeUInt32LE(0, overlap.lastIndexOf("b") - 4); // the second member's place
    await expectCode("CORRUPT", open(overlap));
  });

  it.each([0, 10, 21, 40, 60])("rejects a file cut to %s bytes", async (length) => {
    await expectCode("CORRUPT", open(zipOf({ a: text("hello") }).subarray(0, length)));
  });
});
