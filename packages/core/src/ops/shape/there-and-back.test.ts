// Ops that give elements other places, and those that undo them: nothing is lost, added or moved, forward and backward.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tensor } from "../../index";
import * as core from "../../index";

await core.init("js");

const extents = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 4 });
const dtypes = fc.constantFrom("f32", "f64", "bf16", "i32", "u8", "bool");

/** Numbers that tell each element from the others, as far as the dtype can. */
function numbered(shape: readonly number[], dtype: core.DType): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  const numbers = Array.from({ length: size }, (_, i) => (dtype === "bool" ? i % 2 : i));
  return core.tensor(numbers, { shape, dtype });
}

/** An axis of the shape, from the front or from the end, and a number to choose by. */
type Way = (x: Tensor, axis: number, choice: number) => Tensor;

const WAYS: readonly (readonly [string, Way])[] = [
  ["roll", (x, axis, by) => core.roll(core.roll(x, by, axis), -by, axis)],
  ["flip", (x, axis) => core.flip(core.flip(x, axis), axis)],
  [
    "transpose",
    (x, axis, other) => core.transpose(core.transpose(x, axis, other % x.shape.length), other % x.shape.length, axis),
  ],
  ["unsqueeze", (x, axis) => core.squeeze(core.unsqueeze(x, axis), axis)],
  ["stack", (x, axis) => core.select(core.stack([x.mul(0), x, x.mul(0)], axis).to(x.dtype), axis, 1)],
  ["split", (x, axis, size) => core.concat(core.split(x, size + 1, axis), axis)],
  ["chunk", (x, axis, count) => core.concat(core.chunk(x, count + 1, axis), axis)],
  ["slice", (x, axis, at) => core.concat([x.slice(0, at, axis), x.slice(at, Number.MAX_SAFE_INTEGER, axis)], axis)],
  ["reshape", (x) => x.reshape([x.size]).reshape(x.shape)],
  ["flatten", (x) => core.flatten(x).reshape(x.shape)],
  ["pad", (x, _axis, by) => core.pad(core.pad(x, [by, 1]), [-by, -1])],
  [
    "expand",
    (x) =>
      core
        .expand(x, [3, ...x.shape])
        .slice(1, 2)
        .reshape(x.shape),
  ],
  [
    "permute",
    (x, _axis, by) => {
      const axes = x.shape.map((_, i) => (i + by) % x.shape.length);
      return x.permute(axes).permute(axes.map((_, i) => axes.indexOf(i)));
    },
  ],
];

describe.each(WAYS)("%s", (_, way) => {
  it("comes back", () => {
    fc.assert(
      fc.property(extents, dtypes, fc.nat(9), fc.nat(5), fc.boolean(), (shape, dtype, at, choice, isNegative) => {
        const x = numbered(shape, dtype);
        const axis = (at % shape.length) - (isNegative ? shape.length : 0);
        const back = way(x, axis, choice);
        expect([back.shape, back.dtype, [...back.dataSync()]]).toEqual([shape, dtype, [...x.dataSync()]]);
        if (dtype !== "f32" && dtype !== "f64") return;
        const leaf = core.parameter([...x.dataSync()], { shape, dtype });
        const weights = numbered(shape, dtype).add(1);
        way(leaf, axis, choice).mul(weights).sum().backward();
        expect([...leaf.grad!.dataSync()]).toEqual([...weights.dataSync()]);
      }),
      { numRuns: 25 },
    );
  });
});

it("chunk has at most so many pieces, of equal size, of which the last may be less", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 8 }), (extent, chunks) => {
      const sizes = core.chunk(core.zeros([extent]), chunks).map(({ size }) => size);
      expect(sizes.length).toBeLessThanOrEqual(chunks);
      expect(new Set(sizes.slice(0, -1)).size).toBeLessThanOrEqual(1);
      expect(sizes.at(-1)!).toBeLessThanOrEqual(sizes[0]!);
      expect(sizes.reduce((a, b) => a + b, 0)).toBe(extent);
    }),
  );
});

it("what assign writes, at reads, and nothing else changes", () => {
  const index = fc.tuple(fc.integer({ min: -4, max: 3 }), fc.nat(4), fc.nat(4));
  fc.assert(
    fc.property(index, ([row, from, to]) => {
      const x = numbered([4, 5], "f32");
      const before = x.tolist() as number[][];
      const place: [number, [number, number]] = [row, [from, to]];
      const count = Math.max(to - from, 0);
      x.assign(place, numbered([count], "f32").add(100));
      const written = Array.from({ length: count }, (_, i) => 100 + i);
      expect(core.at(x, ...place).tolist()).toEqual(written);
      before[(row + 4) % 4]!.splice(from, count, ...written);
      expect(x.tolist()).toEqual(before);
    }),
  );
});
