import { expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { crc32 } from "../../format/crc32";
import { type ByteSource, memorySource, verified } from "./source";

const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);

/** A source that counts what is read from it. */
function counted() {
  const inner = memorySource("x", bytes);
  const seen = { bytes: 0 };
  const source: ByteSource = {
    ...inner,
    read(target, position) {
      seen.bytes += target.byteLength;
      return inner.read(target, position);
    },
  };
  return { source, seen };
}

it.each([
  ["a whole, read once for both", [[0, 1000]], 1000],
  [
    "parts, the whole read before the first",
    [
      [10, 20],
      [0, 5],
    ],
    1025,
  ],
  [
    "a whole, and a part after it",
    [
      [0, 1000],
      [3, 7],
    ],
    1007,
  ],
  [
    "a part, and the whole after it",
    [
      [3, 7],
      [0, 1000],
    ],
    2007,
  ],
] as [string, [number, number][], number][])("checks %s", async (_, reads, total) => {
  const { source, seen } = counted();
  const checked = verified(source, crc32(bytes));
  for (const [position, length] of reads) {
    const target = new Uint8Array(length);
    await checked.read(target, position);
    expect(target).toEqual(bytes.subarray(position, position + length));
  }
  expect(seen.bytes).toBe(total);
  const wrong = verified(source, crc32(bytes) ^ 1);
  for (const [position, length] of reads) await expectCode("CORRUPT", wrong.read(new Uint8Array(length), position));
});
