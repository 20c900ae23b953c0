import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { random, randomBytes } from "../../testing/fixtures";
import type { SourceBox } from "../format/source";
import { type Box, elementsIn, wholeOf } from "../layout/box";
import { boxesOf } from "../layout/placements";
import { loadCheckpoint } from "../operations";
import { chunksOf } from "../plan/chunks";
import { copyRegion } from "../plan/runs";
import { saveCheckpoint } from "../save/save";
import { streamTensors } from "./stream";

describe("chunks", () => {
  it("are the tensor's elements in order, none larger than asked", () => {
    const shapes = fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 4 });
    fc.assert(
      fc.property(shapes, fc.integer({ min: 1, max: 40 }), (shape, most) => {
        const numbers = Uint32Array.from({ length: elementsIn(wholeOf(shape)) }, (_, i) => i);
        const bytes = new Uint8Array(numbers.buffer);
        const seen: number[] = [];
        for (const region of chunksOf(shape, most)) {
          expect(elementsIn(region)).toBeLessThanOrEqual(most);
          const piece = new Uint32Array(elementsIn(region));
          if (piece.length > 0) copyRegion(wholeOf(shape), bytes, region, new Uint8Array(piece.buffer), region, 4);
          seen.push(...piece);
        }
        expect(seen).toEqual([...numbers]);
      }),
      { seed: 6, numRuns: 300 },
    );
  });
});

describe("the executor", () => {
  it("reads every source byte once and in order, writes every target byte once and in order, in bounded pieces", async () => {
    const shape = [64, 3, 500];
    const whole = randomBytes(elementsIn(wholeOf(shape)) * 4, 7);
    const mesh = { shape: [2, 3], axes: ["a", "b"] };
    const sources = boxesOf({ mesh, tensors: { "*": ["a", null, "b"] } }, { name: "w", shape });
    const targets = boxesOf({ mesh, tensors: { "*": [null, "b", "a"] } }, { name: "w", shape });
    let [read, written] = [0, 0];
    const sourceBox = (box: Box): SourceBox => {
      const bytes = new Uint8Array(elementsIn(box) * 4);
      copyRegion(wholeOf(shape), whole, box, bytes, box, 4);
      let next = 0;
      return {
        ...box,
        byteLength: bytes.length,
        file: "memory",
        async read(target, start) {
          expect(start).toBe(next);
          expect(target.length).toBeLessThanOrEqual(16384);
          next += target.length;
          read += target.length;
          target.set(bytes.subarray(start, start + target.length));
        },
      };
    };
    const results = targets.map((box) => ({ box, bytes: new Uint8Array(elementsIn(box) * 4), next: 0 }));
    const streamed = {
      tensor: { name: "w", dtype: "F32" as const, shape, boxes: sources.map(sourceBox) },
      targets: results.map((result) => ({
        box: result.box,
        async write(bytes: Uint8Array) {
          await new Promise((resolve) => setImmediate(resolve));
          result.bytes.set(bytes, result.next);
          result.next += bytes.length;
          written += bytes.length;
        },
      })),
    };
    await streamTensors([streamed], { maxMemory: 65536 });
    expect([read, written]).toEqual([whole.length, whole.length]);
    const joined = new Uint8Array(whole.length);
    for (const { box, bytes } of results) copyRegion(box, bytes, wholeOf(shape), joined, box, 4);
    expect(Buffer.compare(joined, whole)).toBe(0);
  });

  it("keeps bytes as they are until a target that takes them late has them, and gives it no more than the memory holds", async () => {
    const whole = randomBytes(300_000, 9);
    const shape = [whole.length];
    const box = { offset: [0], size: shape };
    const source: SourceBox = {
      ...box,
      byteLength: whole.length,
      file: "memory",
      async read(target, start) {
        target.set(whole.subarray(start, start + target.length));
      },
    };
    const late = random(10);
    const taken: Uint8Array[] = [];
    let [held, most] = [0, 0];
    const write = async (bytes: Uint8Array) => {
      const place = taken.push(bytes) - 1;
      held += bytes.length;
      most = Math.max(most, held);
      for (let turns = late() % 9; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
      taken[place] = bytes.slice();
      held -= bytes.length;
    };
    const targets = [{ box, write, isQueue: true }];
    await streamTensors([{ tensor: { name: "w", dtype: "U8", shape, boxes: [source] }, targets }], {
      maxMemory: 65536,
    });
    expect(Buffer.compare(Buffer.concat(taken), whole)).toBe(0);
    expect(most).toBeGreaterThan(taken[0]!.length);
    expect(most).toBeLessThanOrEqual((65536 * 2) / 5);
  });

  it("rejects a cap that is no memory at all", async () => {
    await expect(streamTensors([], { maxMemory: 1000 })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });
});

describe("a slice", () => {
  it("of 16 rows reads those rows and no other byte", async () => {
    const fileSystem = new MemoryFileSystem();
    const data = randomBytes(1024 * 256 * 4, 8);
    await saveCheckpoint(
      "/r",
      { step: 0, tensors: { w: { dtype: "F32", shape: [1024, 256], data } } },
      { world: 4, fileSystem },
    );
    const manifest = fileSystem.contents("/r/step-00000000/manifest.json").length;
    fileSystem.bytesRead = 0;
    const { tensors, bytesRead, unverified } = await loadCheckpoint("/r", {
      slices: { w: [[250, 266]] },
      fileSystem,
      as: "plain",
    });
    expect(bytesRead).toBe(16 * 256 * 4);
    expect(fileSystem.bytesRead).toBe(16 * 256 * 4 + manifest);
    expect(Buffer.compare(tensors.w!.data, data.subarray(250 * 1024, 266 * 1024))).toBe(0);
    expect(unverified).toEqual(["w"]);
  });

  it('is verified too with verify: "whole"', async () => {
    const fileSystem = new MemoryFileSystem();
    await saveCheckpoint(
      "/r",
      { step: 0, tensors: { w: { dtype: "U8", shape: [8], data: randomBytes(8, 9) } } },
      { fileSystem },
    );
    const options = { slices: { w: [[0, 2]] as const }, fileSystem, as: "plain" as const };
    expect((await loadCheckpoint("/r", { ...options, verify: "whole" })).unverified).toEqual([]);
    const file = fileSystem.contents("/r/step-00000000/rank-00000.safetensors");
    file[file.length - 1]! ^= 1;
    await expect(loadCheckpoint("/r", { ...options, verify: "whole" })).rejects.toMatchObject({ code: "CORRUPT" });
  });
});
