import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { memorySource, readBytes } from "../../formats/bytes/source";
import { openZip } from "../../formats/zip/read";
import { zipParts } from "./write";

/** What the parts write; no content is streamed. */
const archive = (members: Parameters<typeof zipParts>[0]) =>
  Buffer.concat(zipParts(members).map((part) => part.head()));

it("members come back, their contents aligned to 64 bytes", async () => {
  const contents = ["hello", "", "worlds"].map((text) => Buffer.from(text));
  const bytes = archive(contents.map((content, i) => ({ name: `données/${i}`, content })));
  const members = await openZip(memorySource("made.zip", bytes));
  expect([...members.keys()]).toEqual(["données/0", "données/1", "données/2"]);
  for (const [i, content] of contents.entries()) {
    expect(Buffer.from(await readBytes(members.get(`données/${i}`)!, 0, content.length))).toEqual(content);
    if (content.length > 0) expect(bytes.indexOf(content) % 64).toBe(0);
  }
});

it("more members than 16 bits count; more than a file of tensors is likely to have are rejected", async () => {
  const names = Array.from({ length: 65_536 }, (_, i) => `${i}`);
  const bytes = archive(names.map((name) => ({ name, content: Buffer.from(name) })));
  const members = await openZip(memorySource("made.zip", bytes));
  expect(members.size).toBe(65_536);
  expect(Buffer.from(await readBytes(members.get("65535")!, 0, 5)).toString()).toBe("65535");
  const end = bytes.lastIndexOf(Uint8Array.of(0x50, 0x4b, 6, 6));
  // Python marks the count alone as too large, and writes size and place as they are.
  const python = Buffer.from(bytes);
  for (const [from, to] of [
    [end + 40, -10],
    [end + 48, -6],
  ] as const)
    python.writeUInt32LE(Number(bytes.readBigUInt64LE(from)), bytes.length + to);
  expect((await openZip(memorySource("made.zip", python))).size).toBe(65_536);
  for (const count of [end + 24, end + 32]) bytes.writeBigUInt64LE(140_000n, count);
  await expectCode("REFUSED", openZip(memorySource("made.zip", bytes)));
});

describe("beyond 32 bits", () => {
  const LIMIT = 2 ** 32 - 1;

  /** An archive whose streamed contents are zeros, which no memory holds. */
  function sparse(members: Parameters<typeof zipParts>[0]) {
    const heads: { begin: number; bytes: Uint8Array }[] = [];
    let byteLength = 0;
    for (const part of zipParts(members)) {
      heads.push({ begin: byteLength, bytes: part.head() });
      byteLength += part.byteLength + part.content;
    }
    const read = async (target: Uint8Array, position: number) => {
      target.fill(0);
      for (const { begin, bytes } of heads) {
        const from = Math.max(begin, position);
        const to = Math.min(begin + bytes.length, position + target.length);
        if (from < to) target.set(bytes.subarray(from - begin, to - begin), from - position);
      }
    };
    return { path: "made.zip", byteLength, read };
  }

  /** The members' sizes as a reader from front to back finds them (APPNOTE.TXT, 4.3.7 and 4.3.9). */
  async function streamed(source: ReturnType<typeof sparse>): Promise<number[]> {
    const at = async (position: number, length: number) => Buffer.from(await readBytes(source, position, length));
    const sizes: number[] = [];
    for (let position = 0; ; ) {
      const header = await at(position, 30);
      if (header.readUInt32LE(0) !== 0x04034b50) return sizes;
      const extra = await at(position + 30 + header.readUInt16LE(26), header.readUInt16LE(28));
      const isWide = header.readUInt32LE(22) === LIMIT;
      if (isWide) expect(extra.readUInt16LE(0)).toBe(1);
      const size = isWide ? Number(extra.readBigUInt64LE(4)) : header.readUInt32LE(22);
      position += 30 + header.readUInt16LE(26) + extra.length + size;
      const descriptor = await at(position, isWide ? 24 : 16);
      expect(descriptor.readUInt32LE(0)).toBe(0x08074b50);
      expect(isWide ? Number(descriptor.readBigUInt64LE(16)) : descriptor.readUInt32LE(12)).toBe(size);
      position += descriptor.length;
      sizes.push(size);
    }
  }

  // A number that is the limit itself says "look elsewhere", so there it must be.
  it.each([
    ["a member just below the limit", [LIMIT - 1]],
    ["a member at the limit", [LIMIT]],
    ["a member just above it", [LIMIT + 1]],
    ["a member far above it", [3 * LIMIT]],
    ["several below it that reach beyond it", [2 ** 31, 2 ** 31, 2 ** 31]],
    // A local header of 64 bytes is before the content, one of 16 behind it.
    ...[-2, -1, 0, 1, 2].map((i): [string, number[]] => [`a member after it at ${i}`, [LIMIT - 64 - 16 + i]]),
  ])("%s: what comes after it is found", async (_, sizes) => {
    const last = Buffer.from("the last");
    const members = [...sizes.map((content, i) => ({ name: `${i}`, content })), { name: "last", content: last }];
    const source = sparse(members);
    const found = await openZip(source);
    expect([...found].map(([name, { byteLength }]) => [name, byteLength])).toEqual([
      ...sizes.map((size, i) => [`${i}`, size]),
      ["last", last.length],
    ]);
    expect(Buffer.from(await readBytes(found.get("last")!, 0, last.length))).toEqual(last);
    expect(await streamed(source)).toEqual([...sizes, last.length]);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const end = await readBytes(source, source.byteLength - 22, 22);
    const isMarked = Buffer.from(end).readUInt32LE(16) === LIMIT;
    expect(isMarked).toBe(total > LIMIT - 300);
  });
});
