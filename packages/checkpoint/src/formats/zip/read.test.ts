import fc from "fast-check";
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

  it("reads every member, with comments and fields of other kinds around it", async () => {
    const contents = fc.dictionary(fc.stringMatching(/^[a-z]{1,9}$/), fc.uint8Array({ maxLength: 40 }), { maxKeys: 5 });
    const more = { requiredKeys: [] };
    const options = fc.record(
      { zip64: fc.boolean(), comment: fc.nat(0xffff).map((length) => "c".repeat(length)), extra: fc.nat(20) },
      more,
    );
    await fc.assert(
      fc.asyncProperty(contents, options, fc.boolean(), async (contents, options, isDeflated) => {
        const members = await open(zipOf(contents, { ...options, ...(isDeflated && { deflated: {} }) }));
        expect([...members.keys()].sort()).toEqual(Object.keys(contents).sort());
        for (const [name, member] of members)
          expect([...(await readBytes(member, 0, member.byteLength))]).toEqual([...contents[name]!]);
      }),
    );
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

  it("rejects members packed by other methods, two of one name, and members that overlap", async () => {
    await expectCode("UNSUPPORTED", open(zipOf({ a: text("hello") }, { method: 12 })));
    const twice = Buffer.from(zipOf({ a: text("1"), b: text("2") }).map((byte) => (byte === 0x62 ? 0x61 : byte)));
    await expectCode("CORRUPT", open(twice));
    const overlap = Buffer.from(zipOf({ a: text("1"), b: text("2") }));
    overlap.writeUInt32LE(0, overlap.lastIndexOf("b") - 4); // the second member's place
    await expectCode("CORRUPT", open(overlap));
  });

  it.each([0, 10, 21, 40, 60])("rejects a file cut to %s bytes", async (length) => {
    await expectCode("CORRUPT", open(zipOf({ a: text("hello") }).subarray(0, length)));
  });

  it.each([
    ["held", 70_000],
    ["larger than what is held", 17 << 20],
  ])("inflates members that are %s, in any order", async (_, length) => {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < 70_000; i++) bytes[i] = (i * i) >> 9;
    const members = await open(zipOf({ a: bytes, b: text("b") }, { deflated: {} }));
    const reads = [60_000, 5, length - 9].map(async (from) => {
      expect([...(await readBytes(members.get("a")!, from, 9))]).toEqual([...bytes.subarray(from, from + 9)]);
    });
    await Promise.all([...reads, readBytes(members.get("b")!, 0, 1)]);
    expect(Buffer.compare(await readBytes(members.get("a")!, 0, length), bytes)).toBe(0);
  });

  it.each([
    [1, 100],
    [-1, 100],
    [1, 17 << 20],
    [-1, 17 << 20],
  ])("rejects a member that says to have %s bytes more than the %s that it inflates to", async (more, length) => {
    const members = await open(zipOf({ a: new Uint8Array(length) }, { deflated: { more } }));
    await expectCode("CORRUPT", readBytes(members.get("a")!, 0, length + more));
  });

  it("rejects so large contents as so few bytes cannot hold, and damaged ones, again and again", async () => {
    await expectCode("CORRUPT", open(zipOf({ a: text("hello") }, { deflated: { more: 9000 } })));
    const zip = zipOf({ a: text("hello hello hello hello") }, { deflated: {} });
    zip[31] = 0xff;
    const members = await open(zip);
    for (let i = 0; i < 2; i++) await expectCode("CORRUPT", readBytes(members.get("a")!, 0, 5));
  });
});
