import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { randomBytes } from "../../testing/fixtures";
import { crc32 } from "../format/crc32";
import { type SelectedTensor, type SourceBox, StoredBox } from "../format/source";
import { Verification } from "../format/verification";
import { type Box, elementsIn, wholeOf } from "../layout/box";
import { boxesOf } from "../layout/placements";
import { copyRegion } from "../plan/runs";
import type { StoredFile } from "../stores/file-system";
import { Scratch } from "../stores/scratch";
import { PlannedSource, planReads, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";

const WIDTH = 2;
const KIB = 1 << 10;

/** A file in memory that counts its reads. */
function fileOf(bytes: Uint8Array): StoredFile & { reads: [number, number][] } {
  const reads: [number, number][] = [];
  return {
    reads,
    async read(target, position) {
      reads.push([position, target.length]);
      await new Promise((resolve) => (reads.length % 3 === 0 ? setImmediate(resolve) : resolve(undefined)));
      target.set(bytes.subarray(position, position + target.length));
    },
  };
}

/** Elements of a row-major tensor, in boxes that follow each other in one file, each behind a gap. */
function stored(shape: readonly number[], boxes: readonly Box[], gap: number) {
  const whole = randomBytes(elementsIn(wholeOf(shape)) * WIDTH, 1);
  const pieces: Uint8Array[] = [];
  const begins: number[] = [];
  let end = 0;
  for (const box of boxes) {
    const piece = new Uint8Array(elementsIn(box) * WIDTH);
    copyRegion(wholeOf(shape), whole, box, piece, box, WIDTH);
    begins.push(end + gap);
    pieces.push(new Uint8Array(gap), piece);
    end += gap + piece.length;
  }
  const bytes = Buffer.concat(pieces);
  const file = fileOf(bytes);
  const sourceBoxes = boxes.map(({ offset, size }, i): SourceBox => {
    const piece = pieces[2 * i + 1]!;
    return new StoredBox(offset, size, "file", begins[i]!, piece.length, crc32(piece), file);
  });
  const verification = new Verification();
  const tensor: SelectedTensor = { name: "w", dtype: "I16", shape, boxes: sourceBoxes, verification };
  return { whole, file, tensor, verification, bytes };
}

/** 4 by 4 boxes of [64, 64]. */
const grid = boxesOf(
  { mesh: { shape: [4, 4], axes: ["a", "b"] }, tensors: { "*": ["a", "b"] } },
  { name: "w", shape: [64, 64] },
);

describe("a plan of reads", () => {
  it("fills any region from any boxes, whatever the memory", async () => {
    const layouts = fc.constantFrom(["a", "b"], ["b", "a"], ["a", null], [null, "b"], [null, null]);
    const pair = fc.tuple(fc.integer({ min: 0, max: 39 }), fc.integer({ min: 0, max: 30 }));
    await fc.assert(
      fc.asyncProperty(layouts, pair, pair, fc.constantFrom(200, 5000, 1 << 20), async (split, from, size, memory) => {
        const shape = [40, 31];
        const mesh = { shape: [3, 2], axes: ["a", "b"] };
        const { whole, tensor } = stored(shape, boxesOf({ mesh, tensors: { "*": split } }, { name: "w", shape }), 7);
        const region = { offset: [...from], size: [Math.min(size[0], 40 - from[0]), Math.min(size[1], 31 - from[1])] };
        const [target, wanted] = [0, 0].map(() => new Uint8Array(elementsIn(region) * WIDTH));
        const request = new ReadRequest(new PlannedSource(tensor), region, target);
        await new ReadPool(new Scratch(memory)).fill([request]);
        if (wanted!.length > 0) copyRegion(wholeOf(shape), whole, region, wanted!, region, WIDTH);
        expect(Buffer.compare(target!, wanted!)).toBe(0);
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it.each([
    [32 * KIB, 1],
    [32 * KIB + 1, 16],
  ])("reads over gaps of 32 KiB and no longer: of %d bytes", async (gap, reads) => {
    const { file, tensor, whole } = stored([64, 64], grid, gap);
    const target = new Uint8Array(whole.length);
    await new ReadPool().fill([new ReadRequest(new PlannedSource(tensor), wholeOf([64, 64]), target)]);
    expect(file.reads).toHaveLength(reads);
    expect(Buffer.compare(target, whole)).toBe(0);
  });

  it("joins no more than the memory holds", () => {
    const { tensor } = stored([64, 64], grid, 0);
    const request = new ReadRequest(new PlannedSource(tensor), wholeOf([64, 64]), new Uint8Array(64 * 64 * WIDTH));
    const lengths = [...planReads([request], 1200)].map(({ length }) => length);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(1200);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(64 * 64 * WIDTH);
    expect(lengths).toHaveLength(8);
  });

  it("reads large boxes in pieces, straight to where they belong", () => {
    const shape = [9 << 20];
    const { tensor } = stored(shape, [wholeOf(shape)], 100);
    const target = new Uint8Array(18 << 20);
    const reads = [...planReads([new ReadRequest(new PlannedSource(tensor), wholeOf(shape), target)], 1 << 20)];
    expect(reads.map(({ position, length }) => [position, length])).toEqual(
      [0, 1, 2, 3, 4].map((i) => [100 + i * (4 << 20), i < 4 ? 4 << 20 : 2 << 20]),
    );
    expect(reads.every(({ into }) => into?.buffer === target.buffer)).toBe(true);
  });

  it("reads what is no plain bytes of a file from front to back", async () => {
    const shape = [5 << 20];
    const whole = randomBytes(shape[0]!, 2);
    const starts: number[] = [];
    let running = 0;
    const box: SourceBox = {
      ...{ offset: [0], size: shape, byteLength: whole.length, file: "zip" },
      async read(target, start) {
        expect(running++).toBe(0);
        starts.push(start);
        await new Promise((resolve) => setImmediate(resolve));
        target.set(whole.subarray(start, start + target.length));
        running--;
      },
    };
    const source = new PlannedSource({ name: "w", dtype: "U8", shape, boxes: [box] });
    const target = new Uint8Array(whole.length);
    await new ReadPool(new Scratch(1 << 20)).fill([new ReadRequest(source, wholeOf(shape), target)]);
    expect(starts).toEqual([...starts].sort((a, b) => a - b));
    expect(Buffer.compare(target, whole)).toBe(0);
  });
});

describe("verification", () => {
  const read = async (tensor: SelectedTensor, region: Box, extent: "region" | "chunk" | "whole") =>
    new ReadPool(new Scratch(8 * 300)).fill([
      new ReadRequest(new PlannedSource(tensor), region, new Uint8Array(elementsIn(region) * WIDTH), { extent }),
    ]);

  it("is of every box whose bytes all came, in whatever order", async () => {
    const { tensor, verification, bytes } = stored([64, 64], grid, 0);
    await read(tensor, wholeOf([64, 64]), "region");
    expect([verification.unverified(), verification.bytesRead]).toEqual([[], bytes.length]);
    bytes[1000]! ^= 1;
    await expect(read(tensor, wholeOf([64, 64]), "region")).rejects.toMatchObject({ code: "CORRUPT" });
  });

  it("is not of boxes that are read in part, unless they are read whole for it", async () => {
    const region = { offset: [10, 3], size: [9, 20] };
    const [part, whole] = [stored([64, 64], grid, 0), stored([64, 64], grid, 0)];
    await read(part.tensor, region, "region");
    expect(part.verification.unverified()).toEqual(["w"]);
    await read(whole.tensor, region, "whole");
    expect(whole.verification.unverified()).toEqual([]);
    whole.bytes[0]! ^= 1; // of a box in which the region begins, before it
    await expect(read(whole.tensor, region, "whole")).rejects.toMatchObject({ code: "CORRUPT" });
  });

  it("is of boxes that chunks read together", async () => {
    const { tensor, verification } = stored([64, 64], grid, 0);
    const source = new PlannedSource(tensor);
    const half = (row: number) => {
      const region = { offset: [row, 0], size: [8, 64] };
      return new ReadRequest(source, region, new Uint8Array(8 * 64 * WIDTH), { extent: "chunk" });
    };
    const pool = new ReadPool();
    for (const row of [8, 0, 24, 16, 40, 32, 56]) await pool.fill([half(row)]);
    expect(verification.unverified()).toEqual(["w"]);
    await pool.fill([half(48)]);
    expect(verification.unverified()).toEqual([]);
  });
});
