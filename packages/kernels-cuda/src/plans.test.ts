/** What is decided on the host before a launch: sizes of blocks, tables, cuts, walks. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { writeInteger } from "./arguments";
import { chunkLength, planChunks } from "./chunk-table";
import { rowThreads } from "./launcher";
import { cutLines } from "./launches";
import { blockSize } from "./memory";

it("counts the elements of a place from chunk to chunk, and none into the next parameter", () => {
  const place = 3 * 2 ** 32 - 1024;
  const { words, chunks } = planChunks(Float64Array.of(4096, place), [3000], [2, 0], 4);
  const rows = [...new BigUint64Array(words.buffer)].map(Number);
  expect(Array.from({ length: chunks }, (_, c) => rows.slice(3 * c, 3 * c + 3))).toEqual([
    [4096, place, 1024],
    [4096 + 2048, 2 * 2 ** 32, 1024],
    [4096 + 4096, 2 * 2 ** 32 + 1024, 952],
  ]);
});

it("rounds requests up by an eighth at most, and to few sizes", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (bytes) => {
      const block = blockSize(bytes);
      expect(block).toBeGreaterThanOrEqual(bytes);
      expect(block).toBeLessThanOrEqual(Math.max(bytes * 1.126, bytes + 512));
      expect(block % 512).toBe(0);
      expect(blockSize(block)).toBe(block);
    }),
  );
  expect(blockSize(0)).toBe(512);
});

it("writes integers of 64 bits", () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (value) => {
      const halves = new Uint32Array(2);
      writeInteger(halves, 0, value);
      expect(new BigInt64Array(halves.buffer)[0]).toBe(BigInt(value));
    }),
  );
});

it("covers every element of every tensor once, in order, in chunks that keep 128-bit alignment", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 6 }), (lengths) => {
      const buffers = 3;
      const addresses = Float64Array.from({ length: lengths.length * buffers }, (_, i) => 2 ** 40 + i * 2 ** 24);
      const { words, chunks, starts } = planChunks(addresses, lengths, [4, 4, 4], 4);
      const rows = new BigUint64Array(words.buffer);
      expect(rows.length).toBe(chunks * (buffers + 1) + lengths.length + 1);
      expect([...rows.slice(chunks * (buffers + 1))].map(Number)).toEqual(starts);
      lengths.forEach((length, t) => {
        let covered = 0;
        for (let c = starts[t]!; c < starts[t + 1]!; c++) {
          const row = [...rows.slice(c * (buffers + 1), (c + 1) * (buffers + 1))].map(Number);
          for (let b = 0; b < buffers; b++) expect(row[b]).toBe(addresses[t * buffers + b]! + covered * 4);
          expect((covered * 4) % 16).toBe(0);
          covered += row[buffers]!;
        }
        expect(covered).toBe(length);
      });
    }),
  );
});

it.each([
  [1000, 132, 1024],
  [2 ** 20, 132, 1024],
  [2 ** 25, 132, 32_768],
  [2 ** 28, 132, 65_536],
])("cuts %d elements for %d multiprocessors into chunks of %d", (elements, multiprocessors, expected) => {
  expect(chunkLength(elements, multiprocessors)).toBe(expected);
});

it.each([
  { lines: 1, length: 2 ** 28, inner: 1, slices: 528, acrossThreads: true },
  { lines: 8192, length: 1000, inner: 1, slices: 1, acrossThreads: true },
  { lines: 100_000, length: 10, inner: 1, slices: 1, acrossThreads: false },
  { lines: 4096, length: 65_536, inner: 4096, slices: 33, acrossThreads: false },
])("reduces $lines lines of $length in $slices slices", ({ lines, length, inner, ...expected }) => {
  expect(cutLines(lines, length, inner, 132)).toEqual(expected);
});

it.each([
  [0, 32],
  [33, 64],
  [100, 128],
  [5000, 256],
])("gives a row of %d elements %d threads", (length, threads) => {
  expect(rowThreads(length)).toBe(threads);
});
