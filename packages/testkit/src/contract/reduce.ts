/** Reductions over a middle axis, and sums of squares over lists of tensors. */
import type { TypedArray } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { seededArray } from "../numbers/seeded";
import { narrowFloatBits, narrowFloatValue } from "../reference/narrow-floats";
import { type ContractContext, LARGE, SIZES } from "./context";
import "../numbers/matcher";

/** [outer, length, inner] */
const SHAPES: readonly (readonly [number, number, number])[] = [
  [1, 1, 1],
  [1, 17, 1],
  [3, 5, 1],
  [3, 5, 7],
  [1, 3, 17],
  [2, 1027, 1],
  [1, 1027, 5],
  [17, 1, 3],
  [1, LARGE, 1],
  [LARGE, 2, 1],
  [1, 2, LARGE],
  [0, 5, 3],
  [3, 5, 0],
];

interface Line {
  readonly values: readonly number[];
  readonly at: number;
}

function linesOf(x: ArrayLike<number>, [outer, length, inner]: readonly [number, number, number]): Line[] {
  const lines: Line[] = [];
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < inner; i++) {
      const values = new Array<number>(length);
      for (let l = 0; l < length; l++) values[l] = x[(o * length + l) * inner + i]!;
      lines.push({ values, at: o * inner + i });
    }
  }
  return lines;
}

function argmax(values: readonly number[]): number {
  const nan = values.findIndex(Number.isNaN);
  if (nan >= 0) return nan;
  let best = 0;
  values.forEach((value, i) => {
    if (value > values[best]!) best = i;
  });
  return best;
}

const magnitude = (x: ArrayLike<number>) => Array.from(x).reduce((sum, value) => sum + Math.abs(value), 0);

export function reduceContract(context: ContractContext): void {
  const { dtype, specials, tolerances } = context;

  /** Lines 0 to 2 hold a NaN, an infinity and two opposite ones. */
  function salt(x: TypedArray, [, length, inner]: readonly [number, number, number]): void {
    if (!specials || length < 3 || x.length < 3 * length * inner) return;
    x[0] = Number.NaN;
    x[length * inner + inner] = Number.POSITIVE_INFINITY;
    x[2 * length * inner] = Number.POSITIVE_INFINITY;
    x[2 * length * inner + inner] = Number.NEGATIVE_INFINITY;
  }

  describe("reduce", () => {
    describe.each(["sum", "mean"] as const)("%s", (op) => {
      it.each(context.cases(SHAPES))("over [%d, %d, %d]", async (outer, length, inner) => {
        const shape = [outer, length, inner] as const;
        const input = context.seeded(outer * length * inner, length, {});
        salt(input, shape);
        const lines = linesOf(input, shape);
        const divisor = op === "sum" ? 1 : length;
        const expected = lines.map(({ values }) => values.reduce((sum, value) => sum + value, 0) / divisor);
        const finite = lines.map(({ values }) => magnitude(values.filter(Number.isFinite)) / divisor);
        await context.check(
          { kind: "reduce", op, dtype },
          { input: { input }, output: { output: context.empty(outer * inner) } },
          (slices) => ({ ...slices, outer, length, inner }),
          ({ output }, label) => {
            const tolerance = context.sumTolerance(finite.reduce((a, b) => Math.max(a, b), 0));
            expect(output, label).toAgreeWith(expected, tolerance);
          },
        );
      });
    });

    describe.each(["max", "argmax"] as const)("%s", (op) => {
      it.each(context.cases(SHAPES))("over [%d, %d, %d]", async (outer, length, inner) => {
        const input = context.seeded(outer * length * inner, length + 50, { specials });
        const lines = linesOf(input, [outer, length, inner]);
        const best = lines.map(({ values }) => argmax(values));
        const expected = op === "max" ? lines.map(({ values }, i) => values[best[i]!]!) : best;
        const space = op === "max" ? context.empty(outer * inner) : new Int32Array(outer * inner);
        await context.check(
          { kind: "reduce", op, dtype },
          { input: { input }, output: { output: space } },
          (slices) => ({ ...slices, outer, length, inner }),
          // 0 ulp: which of two zeros wins is left open.
          ({ output }, label) => expect(output, label).toAgreeWith(expected, { ulp: 0 }),
        );
      });

      it("gives the first of equals and, where there is one, the first NaN", async () => {
        const rows = [
          [1, 3, 3, 2],
          [-5, -5, -5, -5],
          [0, -0, 0, -1],
          ...(specials
            ? [
                [1, Number.NaN, 9, Number.NaN],
                [Number.NaN, 1, 2, 3],
                [0, 1, Number.POSITIVE_INFINITY, 1],
              ]
            : []),
        ];
        const input = context.empty(rows.length * 4);
        input.set(rows.flat());
        const best = rows.map(argmax);
        const expected = op === "max" ? rows.map((row, i) => row[best[i]!]!) : best;
        const space = op === "max" ? context.empty(rows.length) : new Int32Array(rows.length);
        await context.check(
          { kind: "reduce", op, dtype },
          { input: { input }, output: { output: space } },
          (slices) => ({ ...slices, outer: rows.length, length: 4, inner: 1 }),
          ({ output }, label) => expect(output, label).toAgreeWith(expected, { ulp: 0 }),
        );
      });
    });

    it("gives 0 for the sum of nothing and NaN for its mean", async () => {
      for (const [op, value] of [
        ["sum", 0],
        ["mean", Number.NaN],
      ] as const) {
        if (op === "mean" && !specials) continue;
        await context.check(
          { kind: "reduce", op, dtype },
          { input: { input: context.empty(0) }, output: { output: context.empty(15) } },
          (slices) => ({ ...slices, outer: 5, length: 0, inner: 3 }),
          ({ output }, label) => expect(output, `${op}, ${label}`).toAgreeWith(new Array(15).fill(value), { ulp: 0 }),
        );
      }
    });
  });

  describe("sumSquares", () => {
    async function checkSquares(tensors: readonly TypedArray[]) {
      const expected = tensors.map((x) => Array.from(x).reduce((sum, value) => sum + value * value, 0));
      const largest = expected.filter(Number.isFinite).reduce((a, b) => Math.max(a, b), 0);
      await context.check(
        { kind: "sumSquares", dtype },
        {
          input: Object.fromEntries(tensors.map((x, t) => [`x${t}`, x])),
          output: { output: context.empty(tensors.length) },
        },
        (slices) => ({ inputs: tensors.map((_, t) => slices[`x${t}`]!), output: slices.output! }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, context.sumTolerance(largest)),
      );
    }

    it.each(context.cases([...SIZES, LARGE]))("of one tensor of %d", (size) =>
      checkSquares([context.seeded(size, size)]),
    );

    it("of a list of tensors of different sizes", () => {
      return checkSquares([...SIZES, 256, 0, 64].map((size, t) => context.seeded(size, 600 + t)));
    });

    it("of no tensors", () => checkSquares([]));

    if (dtype === "f32") {
      it.each(["bf16", "f16"] as const)("of tensors stored in %s", async (stored) => {
        const tensors = SIZES.map((size, t) => seededArray(stored, size, { seed: 800 + t }));
        const numbers = tensors.map((x) => Array.from(x, (bits) => narrowFloatValue(bits, stored)));
        const expected = numbers.map((x) => x.reduce((sum, value) => sum + value * value, 0));
        await context.check(
          { kind: "sumSquares", dtype, stored },
          {
            input: Object.fromEntries(tensors.map((x, t) => [`x${t}`, x])),
            output: { output: context.empty(tensors.length) },
          },
          (slices) => ({ inputs: tensors.map((_, t) => slices[`x${t}`]!), output: slices.output! }),
          ({ output }, label) =>
            expect(output, label).toAgreeWith(expected, context.sumTolerance(Math.max(...expected))),
        );
      });
    }

    // Exact or not: loss scaling stands on it.
    const formats = dtype === "f32" ? (["f32", "bf16", "f16"] as const) : (["f64"] as const);
    it.each(formats)("finds what is not finite in %s", async (format) => {
      const stored = format === "f64" ? undefined : format;
      const bad: Record<string, number> = { 4: Number.NaN, 5: Number.POSITIVE_INFINITY, 6: Number.NEGATIVE_INFINITY };
      const tensors = [0, 1, 17, 1027, 5, 1027, 70_000].map((size, t) => {
        const x = seededArray(format, size, { seed: 900 + t });
        x.set(
          [3, -7]
            .map((value) => (format === "bf16" || format === "f16" ? narrowFloatBits(value, format) : value))
            .slice(0, size),
        );
        const value = bad[t];
        if (value !== undefined)
          x[size - 1] = format === "bf16" || format === "f16" ? narrowFloatBits(value, format) : value;
        return x;
      });
      await context.check(
        { kind: "sumSquares", dtype, nonFinite: true, ...(stored && { stored }) },
        {
          input: Object.fromEntries(tensors.map((x, t) => [`x${t}`, x])),
          output: { output: context.empty(tensors.length) },
        },
        (slices) => ({ inputs: tensors.map((_, t) => slices[`x${t}`]!), output: slices.output! }),
        ({ output }, label) =>
          expect(
            [...output!].map((sum) => sum === 0),
            label,
          ).toEqual([true, true, true, true, false, false, false]),
      );
    });

    context.itWithSpecials("lets NaN and infinity through, each in its own tensor", async () => {
      const tensors = [5, 1027, 17].map((size, t) => context.seeded(size, 700 + t));
      tensors[0]![4] = Number.NaN;
      tensors[1]![1026] = Number.NEGATIVE_INFINITY;
      await checkSquares(tensors);
      expect(tolerances.sums).toBeGreaterThan(0);
    });
  });
}
