/** Rows by index: gather, and scatterAdd in the order of its indices. */
import { describe, expect, it } from "vitest";
import { seededIndices } from "../numbers/seeded";
import { type ContractContext, LARGE } from "./context";
import "../numbers/matcher";

/** rows, width, count */
const SHAPES: readonly (readonly [number, number, number])[] = [
  [1, 1, 1],
  [5, 3, 17],
  [3, 17, 5],
  [100, 33, 1027],
  [7, 1, LARGE],
  [LARGE, 2, 9],
  [4, LARGE, 3],
  [5, 3, 0],
  [5, 0, 3],
];

export function rowsByIndexContract(context: ContractContext): void {
  const { dtype, specials, tolerances } = context;

  async function checkGather(rows: number, width: number, indices: Int32Array) {
    const table = context.seeded(rows * width, 1, { specials });
    const valid = (index: number) => index >= 0 && index < rows;
    const expected = new Float64Array(indices.length * width).map((_, i) => {
      const index = indices[Math.floor(i / width)]!;
      return valid(index) ? table[index * width + (i % width)]! : Number.NaN;
    });
    await context.check(
      { kind: "gather", dtype },
      { input: { table, indices }, output: { output: context.empty(expected.length) } },
      (slices) => ({ ...slices, rows, width, count: indices.length }),
      ({ output }, label) => expect(output, label).toAgreeWith(expected, tolerances.map),
    );
  }

  async function checkScatter(rows: number, width: number, indices: Int32Array) {
    const source = context.seeded(indices.length * width, 2);
    const output = context.empty(rows * width);
    const expected = output.slice(); // adding in the dtype, in order
    indices.forEach((index, i) => {
      if (index < 0 || index >= rows) return;
      for (let column = 0; column < width; column++) expected[index * width + column]! += source[i * width + column]!;
    });
    await context.check(
      { kind: "scatterAdd", dtype },
      { input: { source, indices }, output: { output } },
      (slices) => ({ ...slices, rows, width, count: indices.length }),
      (results, label) => expect(results.output, label).toAgreeWith(expected, tolerances.ordered),
    );
  }

  const outOfRange = Int32Array.of(0, -1, 4, 5, 2 ** 31 - 1, -(2 ** 31), 2);

  describe("gather", () => {
    it.each(context.cases(SHAPES))("from [%d, %d], %d times", (rows, width, count) => {
      return checkGather(rows, width, seededIndices(count, rows, 4));
    });

    context.itWithSpecials("gives a row of NaN for an index out of range", () => checkGather(5, 3, outOfRange));
  });

  describe("scatterAdd", () => {
    it.each(context.cases(SHAPES))("into [%d, %d], %d times", (rows, width, count) => {
      return checkScatter(rows, width, seededIndices(count, rows, 5));
    });

    it("adds nothing for an index out of range", () => checkScatter(5, 3, outOfRange));
    it("adds repeated indices in order", () => checkScatter(3, 5, Int32Array.of(1, 1, 1, 0, 1, 0)));
  });
}
