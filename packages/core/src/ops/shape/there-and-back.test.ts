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

it("a position in a tensor without axes is as the number, beside others too", () => {
  const rows = core.tensor([1, 0, 1], { dtype: "i32" });
  const range: [number, number] = [0, 2];
  const item = fc.constantFrom<core.Index>(null, range, rows, 0, 1, -1);
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 4 }), (index) => {
      const x = numbered([2, 3, 2, 4], "f32");
      const other = index.map((each) => (typeof each === "number" ? core.tensor(each, { dtype: "i32" }) : each));
      const [y, z] = [core.at(x, ...index), core.at(x, ...other)];
      expect([z.shape, z.tolist()]).toEqual([y.shape, y.tolist()]);
      const put = (by: core.Index[]) => core.indexPut(x, by, numbered(y.shape, "f32").add(100)).tolist();
      expect(put(other)).toEqual(put(index));
    }),
    { numRuns: 50, seed: 48 },
  );
});

/** Arguments by which a result has the numbers of the matrix that is given. */
const UNCHANGED: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  "roll by 0": (x) => core.roll(x, 0),
  "roll of an axis by its extent": (x) => core.roll(x, [2], [0]),
  "flip of none": (x) => core.flip(x, []),
  "rot90 four times": (x) => core.rot90(x, 4),
  "pad by 0": (x) => core.pad(x, [0, 0]),
  ...Object.fromEntries(
    (["reflect", "replicate", "circular"] as const).map((mode) => [
      `pad by 0, ${mode}`,
      (x) => core.pad(x, [0, 0], { mode }),
    ]),
  ),
  "repeat once": (x) => core.repeat(x, [1, 1]),
  "repeatInterleave once": (x) => core.repeatInterleave(x, 1, 0),
  "expand to its shape": (x) => core.expand(x, x.shape),
  "permute of none": (x) => core.permute(x, [0, 1]),
  "transpose of an axis with itself": (x) => core.transpose(x, 1, 1),
  "slice of all": (x) => x.slice(0),
  "split into one": (x) => core.split(x, 2)[0]!,
  "chunk into one": (x) => core.chunk(x, 1)[0]!,
  "tensorSplit into one": (x) => core.tensorSplit(x, 1)[0]!,
  "concat of one": (x) => core.concat([x]),
  "movedim to where it is": (x) => core.movedim(x, 0, 0),
  "tril of all": (x) => core.tril(x, 9),
  "triu of all": (x) => core.triu(x, -9),
  "clamp between infinities": (x) => core.clamp(x, Number.NEGATIVE_INFINITY),
  "maskedFill of none": (x) => core.maskedFill(x, x.lt(0), 0),
  "where of all": (x) => core.where(x.ge(0), x, 0),
  nanToNum: (x) => core.nanToNum(x),
  relu: (x) => x.relu(),
  abs: (x) => x.abs(),
  floor: (x) => core.floor(x),
  "round to decimals": (x) => core.round(x, { decimals: 2 }),
  "pow by 1": (x) => x.pow(1),
  "matrixPower of 1": (x) => core.matrixPower(x, 1),
  "matmul with the unit": (x) => x.matmul(core.eye(2, 2, { dtype: x.dtype })),
  "einsum of one": (x) => core.einsum("ij->ij", x),
  "scatter of none": (x) => core.scatter(x, 0, core.zeros([0, 0], { dtype: "i32" }), 1),
  "indexAdd of none": (x) =>
    core.indexAdd(x, 0, core.zeros([0], { dtype: "i32" }), core.zeros([0, 2], { dtype: x.dtype })),
  "indexPut of none": (x) => core.indexPut(x, [x.lt(0)], 1),
  clone: (x) => x.clone(),
  ...Object.fromEntries(
    (["sum", "mean", "max", "prod", "cumsum", "cumprod", "logcumsumexp", "logsumexp", "cummax", "sort"] as const).map(
      (name) => [
        `${name} of one each`,
        (x) => {
          const op = (core as never as Record<string, (x: Tensor, axis: number) => Tensor>)[name]!;
          const result = op(x.reshape([2, 1, 2]), 1) as Tensor & { values?: Tensor };
          return (result.values ?? result).reshape([2, 2]);
        },
      ],
    ),
  ),
};

it.each(Object.entries(UNCHANGED))("%s gives the same numbers in memory of its own", (_, op) => {
  for (const dtype of ["f64", "f32"] as const) {
    const x = core.tensor([1, 2, 3, 4], { shape: [2, 2], dtype });
    const y = op(x);
    const numbers = x.tolist();
    expect([y.dtype, y.tolist()]).toEqual([dtype, numbers]);
    x.assign([], 9);
    expect(y.tolist()).toEqual(numbers);
    y.dispose();
    expect(x.isDisposed).toBe(false);
  }
});
