// "NaN counts as largest, equals keep their order": sort, argsort, topk, argmax and argmin of any numbers, as the host orders them.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { argmax, argmin, argsort, init, sort, tensor, topk } from "../../index";

await init("js");

const value = fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 1, 1, 2, -3);
const rows = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 9 }))
  .chain(([count, length]) =>
    fc.array(fc.array(value, { minLength: length, maxLength: length }), { minLength: count, maxLength: count }),
  );

/** Below 0 where a is before b: NaN is larger than all, and equals are equal. */
function compared(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : Number(a > b);
}

const orderOf = (row: readonly number[], descending: boolean): number[] =>
  row.map((_, i) => i).sort((a, b) => (descending ? compared(row[b]!, row[a]!) : compared(row[a]!, row[b]!)) || a - b);

// The other one's memory is not the host's: it compares each two.
describe.each([
  ["js", undefined],
  ["a device of its own memory", new FakeDevice()],
] as const)("on %s", (_, device) => {
  const made = (list: number[][], dtype: "f32" | "f64") => tensor(list, { dtype, ...(device && { device }) });

  it("sort and argsort", () => {
    fc.assert(
      fc.property(rows, fc.boolean(), fc.constantFrom("f32", "f64"), (list, descending, dtype) => {
        const expected = list.map((row) => orderOf(row, descending));
        const { values, indices } = sort(made(list, dtype), 1, { descending });
        expect(indices.tolist()).toEqual(expected);
        expect(argsort(made(list, dtype), 1, { descending }).tolist()).toEqual(expected);
        const sorted = list.map((row, r) => expected[r]!.map((i) => row[i]!));
        expect([...values.dataSync()]).toEqual(sorted.flat());
      }),
      { numRuns: 40 },
    );
  });

  it("equals in a row that is compared in parts", () => {
    const row = Array.from({ length: 2100 }, (_, i) => (i * 7) % 5);
    expect(argsort(made([row], "f32"), 1).tolist()).toEqual([orderOf(row, false)]);
  });

  it("topk, whose values are the first of the order", () => {
    fc.assert(
      fc.property(rows, fc.boolean(), fc.nat(9), (list, largest, count) => {
        const k = 1 + (count % list[0]!.length);
        const { values, indices } = topk(made(list, "f32"), k, 1, { largest });
        const found = indices.tolist() as number[][];
        list.forEach((row, r) => {
          const best = orderOf(row, largest).slice(0, k);
          expect((values.tolist() as number[][])[r]).toEqual(best.map((i) => row[i]!));
          expect(new Set(found[r]).size).toBe(k);
          expect(found[r]!.map((i) => row[i]!)).toEqual(best.map((i) => row[i]!));
        });
      }),
      { numRuns: 40 },
    );
  });
});

it("argmax and argmin have the first of equals, and the first NaN", () => {
  fc.assert(
    fc.property(rows, (list) => {
      const first = (row: readonly number[], sign: number) => {
        const nan = row.findIndex(Number.isNaN);
        return nan >= 0 ? nan : row.reduce((best, x, i) => (sign * x > sign * row[best]! ? i : best), 0);
      };
      expect(argmax(tensor(list), 1).tolist()).toEqual(list.map((row) => first(row, 1)));
      expect(argmin(tensor(list), 1).tolist()).toEqual(list.map((row) => first(row, -1)));
    }),
  );
});
