import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { strides as stridesOf } from "../../plan/runs";
import { memorySource, readBytes } from "./source";
import { stridedSource } from "./strided";

const storage = memorySource(
  "storage",
  Uint8Array.from({ length: 240 }, (_, i) => i),
);

describe("stridedSource", () => {
  it("reads any range of any permutation as the whole read at once does", async () => {
    const shapes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(shapes, fc.nat(), fc.nat(), fc.nat(), async (stored, turn, a, b) => {
        const order = stored.map((_, d) => (d + turn) % stored.length);
        const dense = stridesOf(stored, 1);
        const shape = order.map((d) => stored[d]!);
        const strides = order.map((d) => dense[d]!);
        const source = stridedSource(storage, { bytesPerElement: 3, offset: 2, shape, strides });
        const expected: number[] = [];
        const walk = (d: number, element: number): void => {
          if (d === shape.length) expected.push(element * 3, element * 3 + 1, element * 3 + 2);
          else for (let i = 0; i < shape[d]!; i++) walk(d + 1, element + i * strides[d]!);
        };
        walk(0, 2);
        const [from, to] = [a % (expected.length + 1), b % (expected.length + 1)].sort((x, y) => x - y);
        expect([...(await readBytes(source, from!, to! - from!))]).toEqual(expected.slice(from, to));
      }),
      { seed: 7, numRuns: 100 },
    );
  });

  const view = (shape: number[], strides: number[], offset = 0) => ({ bytesPerElement: 4, offset, shape, strides });

  it.each([
    ["past the end", view([61], [1])],
    ["past the end by its offset", view([2], [1], 59)],
    ["past the end by its strides", view([2, 2], [60, 1])],
    ["of negative strides", view([2], [-1], 3)],
    ["of more elements than there are numbers", view([2 ** 30, 2 ** 30], [0, 0])],
  ])("rejects a view %s", async (_, bad) => {
    await expectCode("CORRUPT", (async () => stridedSource(storage, bad))());
  });

  it("reads a view that repeats itself, and rejects one that would fill the memory", async () => {
    const repeated = await readBytes(stridedSource(storage, view([3, 2], [0, 1])), 0, 24);
    const once = repeated.subarray(0, 8);
    expect([repeated.subarray(8, 16), repeated.subarray(16)]).toEqual([once, once]);
    await expectCode("UNSUPPORTED", (async () => stridedSource(storage, view([10_000_000, 2], [0, 1])))());
  });
});
