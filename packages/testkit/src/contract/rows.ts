/** Row programs: softmax, layerNorm, crossEntropy and their gradients, and one that no op of core has. */
import {
  crossEntropyGradRows,
  crossEntropyRows,
  layerNormGradAddRows,
  layerNormGradRows,
  layerNormRows,
  logSoftmaxGradRows,
  logSoftmaxRows,
  openJsBackend,
  type Rows,
  type Slice,
  softmaxGradRows,
  softmaxRows,
  type TypedArray,
} from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { seededIndices } from "../numbers/seeded";
import * as reference from "../reference/rows";
import { temperedRows } from "../row-programs/tempered";
import { type ContractContext, LARGE } from "./context";
import { guardedLaunch } from "./guarded-launch";
import "../numbers/matcher";

/** rows, length */
const SHAPES: readonly (readonly [number, number])[] = [
  [1, 1],
  [3, 5],
  [17, 3],
  [5, 17],
  [2, 1027],
  [1, LARGE],
  [LARGE, 2],
  [0, 5],
];

const EPS = 1e-5;
const IGNORE = -100;

interface RowsCase<Input extends string, Scalar extends string> {
  readonly inputs: Readonly<Record<Input, TypedArray>>;
  readonly labels?: Int32Array;
  readonly scalars?: Readonly<Record<Scalar, number>>;
  readonly rows: number;
  readonly length: number;
  readonly ignoreIndex?: number;
}

export function rowsContract(context: ContractContext): void {
  const { dtype, specials, tolerances } = context;

  /** Outputs are named with a prefix: an input may have the same name. Where words are the same everywhere they are js's. */
  async function checkRows<Input extends string, Scalar extends string, Output extends string>(
    program: Rows<Input, Scalar, Output>,
    { inputs, labels, scalars, rows, length, ignoreIndex = IGNORE }: RowsCase<Input, Scalar>,
    verify: (results: Readonly<Record<Output, TypedArray>>, label: string) => void,
  ): Promise<void> {
    const sizes = { matrix: rows * length, number: rows, columns: length };
    const regions = {
      input: { ...inputs, ...(labels && { labels }) },
      output: Object.fromEntries(program.outputs.map(({ name, kind }) => [name, context.empty(sizes[kind])])),
    };
    const launch = (slices: Readonly<Record<string, Slice>>) => ({
      inputs: program.inputs.map(({ name }) => slices[name]!),
      outputs: program.outputs.map(({ name }) => slices[name]!),
      ...(labels && { labels: slices.labels! }),
      scalars: program.scalars.map((name) => scalars![name as Scalar]),
      rows,
      length,
      ignoreIndex,
    });
    const spec = { kind: "rows", program, dtype } as const;
    const js = openJsBackend();
    const hasWords = context.hasPortableWords;
    const expected = hasWords ? await guardedLaunch(js, js.kernel(spec), regions, "apart", launch) : {};
    await context.check(spec, regions, launch, (results, label) => {
      verify(results as Readonly<Record<Output, TypedArray>>, label);
      for (const [name, words] of Object.entries(expected))
        expect(results[name], `${name}, ${label}`).toAgreeWith(words, "bits");
    });
  }

  describe.each([{ log: false }, { log: true }])("softmax, log $log", ({ log }) => {
    async function checkSoftmax(rows: number, length: number, input: ReturnType<typeof context.seeded>) {
      const expected = reference.softmax(input, rows, length, log);
      await checkRows(log ? logSoftmaxRows : softmaxRows, { inputs: { x: input }, rows, length }, ({ y }, label) =>
        expect(y, label).toAgreeWith(expected, tolerances.rows),
      );
    }

    it.each(context.sample(SHAPES))("of [%d, %d]", (rows, length) =>
      checkSoftmax(rows, length, context.seeded(rows * length, 1)),
    );

    it("does not overflow: only differences count", async () => {
      const input = context.empty(12);
      input.set([1000, 1001, 999, -1000, -1001, -1000, 80, -80, 0, 1e30, 0, -1e30]);
      await checkSoftmax(4, 3, input);
    });

    context.itWithSpecials("keeps weights that are subnormal", async () => {
      const input = context.empty(12);
      input.set([0, -87.3, -87.4, -95, -103, -103.9, 100, 0, 12.5, 0, -104.5, -800]);
      await checkSoftmax(2, 6, input);
    });

    context.itWithSpecials("knows -infinity as a mask, and passes NaN to its row alone", async () => {
      const input = context.empty(12);
      input.set([0, Number.NEGATIVE_INFINITY, 1, Number.NaN, 1, 2, 3, 2, 1, Number.NEGATIVE_INFINITY, 5, 5]);
      await checkSoftmax(4, 3, input);
    });

    it.each(context.sample(SHAPES))("gradient of [%d, %d]", async (rows, length) => {
      const forward = context.empty(rows * length);
      forward.set(reference.softmax(context.seeded(rows * length, 2), rows, length, log));
      const gradient = context.seeded(rows * length, 3);
      const expected = reference.softmaxGrad(forward, gradient, rows, length, log);
      const largest = log ? Math.sqrt(length) * 8 : 1; // the sum of a row's gradients takes part in each element
      const inputs = { y: forward, g: gradient };
      await checkRows(log ? logSoftmaxGradRows : softmaxGradRows, { inputs, rows, length }, ({ dx }, label) =>
        expect(dx, label).toAgreeWith(expected, scaled(largest)),
      );
    });
  });

  /** The tolerance of rows for results of the given magnitude. */
  function scaled(magnitude: number) {
    const { rows } = tolerances;
    if (typeof rows === "string" || "ulp" in rows) return rows;
    return { absolute: rows.absolute * Math.max(1, magnitude), relative: rows.relative };
  }

  describe("layerNorm", () => {
    const shapes = SHAPES.filter(([, length]) => length > 1);

    it.each(context.sample(shapes))("of [%d, %d]", async (rows, length) => {
      const input = context.seeded(rows * length, 4);
      const weight = context.seeded(length, 5);
      const bias = context.seeded(length, 6);
      const expected = reference.layerNorm(input, weight, bias, rows, length, EPS);
      const launch = { inputs: { x: input, w: weight, b: bias }, scalars: { eps: EPS }, rows, length };
      await checkRows(layerNormRows, launch, (results, label) => {
        expect(results.mean, `mean, ${label}`).toAgreeWith(expected.mean, tolerances.rows);
        expect(results.rstd, `rstd, ${label}`).toAgreeWith(expected.rstd, scaled(16));
        expect(results.y, `output, ${label}`).toAgreeWith(expected.output, scaled(64));
      });
    });

    it("normalises rows far from zero: the variance is not a difference of squares", async () => {
      const input = context.seeded(6 * 64, 7).map((x) => x + 1000);
      const weight = context.empty(64).fill(1);
      const bias = context.empty(64);
      const expected = reference.layerNorm(input, weight, bias, 6, 64, EPS);
      const launch = { inputs: { x: input, w: weight, b: bias }, scalars: { eps: EPS }, rows: 6, length: 64 };
      // The mean, near 1000, is known to one part in 2^24: 6e-5 of an element's distance from it.
      await checkRows(layerNormRows, launch, ({ y }, label) =>
        expect(y, label).toAgreeWith(expected.output, scaled(500)),
      );
    });

    it.each(context.sample(shapes))("gradient of [%d, %d]", async (rows, length) => {
      const input = context.seeded(rows * length, 8);
      const weight = context.seeded(length, 9);
      const gradient = context.seeded(rows * length, 10);
      const forward = reference.layerNorm(input, weight, weight, rows, length, EPS);
      const mean = context.empty(rows);
      const rstd = context.empty(rows);
      mean.set(forward.mean);
      rstd.set(forward.rstd);
      const expected = reference.layerNormGrad(input, weight, mean, rstd, gradient, rows, length);
      const rstdMaximum = forward.rstd.reduce((a, b) => Math.max(a, b), 1);
      const inputs = { x: input, w: weight, mean, rstd, g: gradient };
      await checkRows(layerNormGradRows, { inputs, rows, length }, (results, label) => {
        expect(results.dx, `input, ${label}`).toAgreeWith(expected.inputGradient, scaled(32 * rstdMaximum));
        const total = context.sumTolerance(16 * rows); // |g h| stays below 16 on average
        expect(results.dw, `weight, ${label}`).toAgreeWith(expected.weightGradient, total);
        expect(results.db, `bias, ${label}`).toAgreeWith(expected.biasGradient, total);
      });
    });

    it("gradient, and another added to it: the bits of a sum", async () => {
      const [rows, length] = [37, 65];
      const [x, g, r] = [8, 9, 10].map((seed) => context.seeded(rows * length, seed)) as [
        TypedArray,
        TypedArray,
        TypedArray,
      ];
      const [mean, rstd] = [11, 12].map((seed) => context.seeded(rows, seed)) as [TypedArray, TypedArray];
      const inputs = { x, w: context.seeded(length, 13), mean, rstd, g };
      let plain: Record<string, TypedArray> = {};
      await checkRows(layerNormGradRows, { inputs, rows, length }, (results) => {
        plain = results;
      });
      const sum = context.empty(rows * length).map((_, i) => r[i]! + plain.dx![i]!);
      await checkRows(layerNormGradAddRows, { inputs: { ...inputs, r }, rows, length }, (results, label) => {
        expect(results, label).toEqual({ ...plain, dx: sum });
      });
    });
  });

  describe("crossEntropy", () => {
    /** Labels of which some are ignored and, where specials count, some are out of range. */
    function labelsFor(rows: number, classes: number): Int32Array {
      const labels = seededIndices(rows, classes, 11);
      for (let row = 1; row < rows; row += 4) labels[row] = IGNORE;
      if (specials) for (let row = 2; row < rows; row += 5) labels[row] = row % 2 === 0 ? classes : -1;
      return labels;
    }

    it.each(context.sample(SHAPES))("of [%d, %d]", async (rows, classes) => {
      const logits = context.seeded(rows * classes, 12);
      const labels = labelsFor(rows, classes);
      const expected = reference.crossEntropy(logits, labels, rows, classes, IGNORE);
      const launch = { inputs: { x: logits }, labels, rows, length: classes, ignoreIndex: IGNORE };
      await checkRows(crossEntropyRows, launch, ({ loss }, label) =>
        expect(loss, label).toAgreeWith(expected, scaled(4)),
      );
    });

    it.each(context.sample(SHAPES))("gradient of [%d, %d]", async (rows, classes) => {
      const logits = context.seeded(rows * classes, 13);
      const labels = labelsFor(rows, classes);
      const gradient = context.seeded(rows, 14);
      const expected = reference.crossEntropyGrad(logits, labels, gradient, rows, classes, IGNORE);
      const launch = { inputs: { x: logits, g: gradient }, labels, rows, length: classes };
      await checkRows(crossEntropyGradRows, launch, ({ dx }, label) =>
        expect(dx, label).toAgreeWith(expected, scaled(4)),
      );
    });

    it("takes any label as the one to ignore, within the classes too", async () => {
      const logits = context.seeded(12, 15);
      const labels = Int32Array.of(2, 0, 2, 1);
      const expected = reference.crossEntropy(logits, labels, 4, 3, 2);
      const launch = { inputs: { x: logits }, labels, rows: 4, length: 3, ignoreIndex: 2 };
      await checkRows(crossEntropyRows, launch, ({ loss }, label) =>
        expect(loss, label).toAgreeWith(expected, tolerances.rows),
      );
    });

    it("does not overflow on large logits", async () => {
      const logits = context.empty(6);
      logits.set([1000, 0, -1000, -5000, -5000, 1000]);
      const labels = Int32Array.of(1, 2);
      const expected = reference.crossEntropy(logits, labels, 2, 3, IGNORE);
      const launch = { inputs: { x: logits }, labels, rows: 2, length: 3, ignoreIndex: IGNORE };
      await checkRows(crossEntropyRows, launch, ({ loss }, label) =>
        expect(loss, label).toAgreeWith(expected, scaled(1)),
      );
    });
  });

  it.each(context.sample(SHAPES))("a program of no op of core's, of [%d, %d]", async (rows, length) => {
    const x = context.seeded(rows * length, 16);
    const scaledDown = x.map((value) => value * 0.25);
    const expected = reference.softmax(scaledDown, rows, length, true);
    await checkRows(temperedRows, { inputs: { x }, scalars: { coldness: 0.25 }, rows, length }, ({ y }, label) =>
      expect(y, label).toAgreeWith(expected, tolerances.rows),
    );
  });
}
