/** Sums have the words of js on every exact device: one order, whatever the vectors and threads. */
import { layerNormGradRows, type TypedArray, type Window2d } from "@opt/core/backend";
import { describe, it } from "vitest";
import { seededArray } from "../numbers/seeded";
import type { ContractContext } from "./context";

/** Around lanes and chunks. */
const LENGTHS = [0, 1, 15, 16, 17, 1027, 32_768, 32_769, 100_003];

/** [outer, length, inner]: rows, and columns of which chunks have 10,922, 512 and 504 rows or fewer. */
const SHAPES: readonly (readonly [number, number, number])[] = [
  ...LENGTHS.map((length) => [5, length, 1] as const),
  ...[0, 1, 17, 10_922, 10_923].map((length) => [5, length, 3] as const),
  ...[1, 511, 512, 513, 1027].flatMap((length) => [[2, length, 64] as const, [2, length, 65] as const]),
  [300, 33, 1],
  [1, 700, 130],
  [2, 40_000, 2],
];

const WINDOW: Window2d = {
  ...{ batch: 3, channels: 5, height: 9, width: 11, outHeight: 9, outWidth: 11 },
  ...{ kernel: [3, 3], stride: [1, 1], padding: [1, 1], dilation: [1, 1] },
};

/**
 * Lines of [outer, length, inner] with large numbers that cancel out: what the small ones lose on the way shows the order of a sum,
 * in float32 too.
 */
export function cancelling(x: TypedArray, outer: number, length: number, inner: number): TypedArray {
  for (let o = 0; o < outer; o++) {
    for (let l = 1; l < length - 1 - l; l += 3) {
      for (let i = 0; i < inner; i++) {
        const [at, mirrored] = [l, length - 1 - l].map((place) => (o * length + place) * inner + i) as [number, number];
        x[at]! *= 2 ** 40;
        x[mirrored] = -x[at]!;
      }
    }
  }
  return x;
}

export function sumsContract(context: ContractContext): void {
  const { dtype } = context;
  if (!context.hasWords) return;
  const word = (size: number, seed: number) => context.seeded(size, seed);

  /** Lines 1 to 4 hold a NaN, an infinity, zeros of both signs, and nothing but -0. */
  function salted(outer: number, size: number): TypedArray {
    const x = word(outer * size, 1);
    if (outer < 5 || size === 0) return x;
    x[size + (size >> 1)] = Number.NaN;
    x[3 * size - 1] = Number.NEGATIVE_INFINITY;
    for (let i = 3 * size; i < 5 * size; i++) x[i] = i < 4 * size && i % 2 === 0 ? 0 : -0;
    return x;
  }

  describe("words of sums", () => {
    it.each(["sum", "mean", "max"] as const)("%s over an axis", async (op) => {
      for (const [outer, length, inner] of op === "sum" ? SHAPES : context.sample(SHAPES)) {
        if (op === "max" && length === 0) continue;
        const input = cancelling(salted(outer, length * inner), outer, length, inner);
        await context.checkWords(
          { kind: "reduce", op, dtype },
          { input: { input }, output: { output: context.empty(outer * inner) } },
          (slices) => ({ ...slices, outer, length, inner }),
        );
      }
    });

    const formats = dtype === "f32" ? ([undefined, "bf16", "f16"] as const) : ([undefined] as const);
    it.each(formats)("squares of lists stored in %s", async (stored) => {
      const tensors = [...LENGTHS, 3].map((size, t) => seededArray(stored ?? dtype, size, { seed: 40 + t }));
      await context.checkWords(
        { kind: "sumSquares", dtype, ...(stored && { stored }) },
        {
          input: Object.fromEntries(tensors.map((x, t) => [`x${t}`, x])),
          output: { output: context.empty(tensors.length) },
        },
        (slices) => ({ inputs: tensors.map((_, t) => slices[`x${t}`]!), output: slices.output! }),
      );
    });

    it.each([
      [0, 5],
      [3, 17],
      [513, 64],
      [1027, 65],
      [10_923, 3],
    ])("columns of the gradient of layerNorm of [%d, %d]", async (rows, length) => {
      const x = word(rows * length, 1);
      const [w, mean, rstd] = [word(length, 2), word(rows, 3), word(rows, 4)];
      await context.checkWords(
        { kind: "rows", program: layerNormGradRows, dtype },
        {
          input: { x, w, mean, rstd, g: cancelling(word(rows * length, 5), 1, rows, length) },
          output: { dx: context.empty(rows * length), dw: context.empty(length), db: context.empty(length) },
        },
        ({ x, w, mean, rstd, g, dx, dw, db }) => ({
          ...{ inputs: [x, w, mean, rstd, g], outputs: [dx, dw, db], scalars: [] },
          ...{ rows, length, ignoreIndex: -100 },
        }),
        ["dw", "db"],
      );
    });

    it.each([WINDOW, { ...WINDOW, outHeight: 5, stride: [2, 1] } as Window2d])("fold of %j", async (window) => {
      const { batch, channels, height, width, outHeight, outWidth } = window;
      await context.checkWords(
        { kind: "fold", dtype },
        {
          input: { input: word(batch * channels * 9 * outHeight * outWidth, 6) },
          output: { output: context.empty(batch * channels * height * width) },
        },
        (slices) => ({ ...slices, window }),
      );
    });

    it("maxPool2dGrad of windows that overlap", async () => {
      const { batch, channels, height, width } = WINDOW;
      const plane = height * width;
      const size = batch * channels * plane;
      // Each window takes the pixel at its centre, or a neighbour of it.
      const near = (at: number, by: number, extent: number) => Math.max(0, Math.min(extent - 1, at + by));
      const indices = Int32Array.from(word(size, 7), (x, at) => {
        const y = near(Math.floor((at % plane) / width), Math.sign(x), height);
        return y * width + near(at % width, Math.sign(x - 2), width);
      });
      await context.checkWords(
        { kind: "maxPool2dGrad", dtype },
        { input: { gradient: word(size, 8), indices }, output: { output: context.empty(size) } },
        (slices) => ({ ...slices, window: WINDOW }),
      );
    });

    it("scatterAdd of rows that meet", async () => {
      const [rows, width, count] = [7, 33, 500];
      const indices = Int32Array.from(word(count, 9), (x) => Math.floor(Math.abs(x)));
      await context.checkWords(
        { kind: "scatterAdd", dtype },
        { input: { source: word(count * width, 10), indices }, output: { output: context.empty(rows * width) } },
        (slices) => ({ ...slices, rows, width, count }),
      );
    });
  });
}
