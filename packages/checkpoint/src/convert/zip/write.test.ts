import { expect, it } from "vitest";
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
  for (const count of [end + 24, end + 32]) bytes.writeBigUInt64LE(140_000n, count);
  await expectCode("REFUSED", openZip(memorySource("made.zip", bytes)));
});
