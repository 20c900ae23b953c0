/** Attention and its gradient, on devices that have them. */
import { type AttentionSizes, denseHeads, headShapes } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import * as reference from "../reference/attention";
import type { ContractContext } from "./context";
import "../numbers/matcher";
import type { Slices } from "./guarded-launch";

/** batch, queries, keys, width, columns: below, at and beyond blocks of 64 queries, vectors of keys, and pieces of 512 of both. */
const SIZES: readonly (readonly [number, number, number, number, number])[] = [
  [1, 1, 1, 1, 1],
  [2, 5, 7, 3, 4],
  [1, 64, 128, 16, 32],
  [3, 70, 131, 9, 17],
  [1, 131, 70, 33, 5],
  [1, 530, 260, 8, 8],
  [1, 90, 1030, 5, 35],
  [0, 3, 4, 2, 2],
  [2, 0, 3, 2, 2],
  [2, 3, 0, 2, 2],
  [1, 3, 4, 0, 2],
  [1, 3, 4, 2, 0],
];

export function attentionContract(context: ContractContext): void {
  const { dtype } = context;
  const hasWords = context.hasPortableWords;

  describe.each([false, true])("attention, causal: %s", (causal) => {
    const sized = ([batch, queries, keys, width, columns]: (typeof SIZES)[number]): AttentionSizes => ({
      ...{ batch, queries, keys, width, columns, causal },
      scale: 1 / Math.sqrt(width || 1),
    });
    const inputsOf = ({ batch, queries, keys, width, columns }: AttentionSizes) => ({
      query: context.seeded(batch * queries * width, 1),
      key: context.seeded(batch * keys * width, 2),
      value: context.seeded(batch * keys * columns, 3),
    });

    it.each(context.sample(SIZES))("of %d x %d by %d, %d and %d wide", async (...extents) => {
      const sizes = sized(extents);
      const { batch, queries, columns } = sizes;
      const input = inputsOf(sizes);
      const expected = reference.attention(input.query, input.key, input.value, sizes);
      const regions = { input, output: { output: context.empty(batch * queries * columns) } };
      const launch = (slices: Slices<typeof regions>) => ({ ...slices, ...sizes, ...denseHeads(sizes) });
      await context.check({ kind: "attention", dtype }, regions, launch, ({ output }, label) =>
        expect(output, label).toAgreeWith(expected, context.sumTolerance(16)),
      );
      if (hasWords) await context.checkWords({ kind: "attention", dtype }, regions, launch);
    });

    it.each(context.sample(SIZES))("gradient of %d x %d by %d, %d and %d wide", async (...extents) => {
      const sizes = sized(extents);
      const { batch, queries, keys, width, columns } = sizes;
      const given = inputsOf(sizes);
      const gradient = context.seeded(batch * queries * columns, 4);
      const expected = reference.attentionGrad(given.query, given.key, given.value, gradient, sizes);
      const regions = {
        input: { ...given, gradient },
        output: {
          queryGradient: context.empty(batch * queries * width),
          keyGradient: context.empty(batch * keys * width),
          valueGradient: context.empty(batch * keys * columns),
        },
      };
      const launch = (slices: Slices<typeof regions>) => ({ ...slices, ...sizes, ...denseHeads(sizes) });
      const tolerance = context.sumTolerance(64 * Math.sqrt(queries + columns));
      await context.check({ kind: "attentionGrad", dtype }, regions, launch, (results, label) => {
        for (const name of ["queryGradient", "keyGradient", "valueGradient"] as const) {
          expect(results[name], `${name}, ${label}`).toAgreeWith(expected[name], tolerance);
        }
      });
      if (hasWords) await context.checkWords({ kind: "attentionGrad", dtype }, regions, launch);
    });
  });

  it("reads and writes heads that lie between others", async () => {
    const sizes = { batch: 6, queries: 5, keys: 7, width: 3, columns: 4, scale: 0.5, causal: true };
    const heads = 3;
    const shapes = headShapes(sizes);
    const strides = shapes.map(([rows, length]) => [rows * heads * length, length, heads * length] as const);
    const placeOf = (operand: number, at: number) => {
      const [rows, length] = shapes[operand]!;
      const [item, row, column] = [Math.floor(at / (rows * length)), Math.floor(at / length) % rows, at % length];
      const [outer, head, step] = strides[operand]!;
      return Math.floor(item / heads) * outer + (item % heads) * head + row * step + column;
    };
    const dense = shapes.map(([rows, length], i) => context.seeded(sizes.batch * rows * length, i + 1));
    const spread = (values: ArrayLike<number>, operand: number) => {
      const all = context.empty(values.length);
      for (let at = 0; at < values.length; at++) all[placeOf(operand, at)] = values[at]!;
      return all;
    };
    const [query, key, value, gradient] = dense.map(spread);
    const [q, k, v, g] = dense;
    const launch = <S extends object>(slices: S) => ({ ...slices, ...sizes, heads, strides });
    const input = { query: query!, key: key!, value: value! };
    const empty = (operand: number) => context.empty(dense[operand]!.length);
    const expected = spread(reference.attention(q!, k!, v!, sizes), 3);
    await context.check(
      { kind: "attention", dtype },
      { input, output: { output: empty(3) } },
      launch,
      ({ output }, label) => expect(output, label).toAgreeWith(expected, context.sumTolerance(16)),
    );
    const gradients = reference.attentionGrad(q!, k!, v!, g!, sizes);
    const output = { queryGradient: empty(4), keyGradient: empty(5), valueGradient: empty(6) };
    const regions = { input: { ...input, gradient: gradient! }, output };
    await context.check({ kind: "attentionGrad", dtype }, regions, launch, (results, label) => {
      for (const [i, name] of (["queryGradient", "keyGradient", "valueGradient"] as const).entries())
        expect(results[name], `${name}, ${label}`).toAgreeWith(
          spread(gradients[name], 4 + i),
          context.sumTolerance(64),
        );
    });
  });

  it.each<[string, number[], number, number[]]>([
    ["does not overflow: only differences of scores count", [1, -1], 3, [1000, 1001, -1000]],
    [
      "keys that score -infinity weigh nothing, however many come first",
      [1, 2],
      300,
      new Array(290).fill(Number.NEGATIVE_INFINITY),
    ],
  ])("%s", async (_, queries, keys, firstKeys) => {
    const sizes = { batch: 1, queries: 2, keys, width: 1, columns: 1, scale: 1, causal: false };
    const [query, key, value] = [context.empty(2), context.empty(keys), context.seeded(keys, 1)];
    query.set(queries);
    key.set(firstKeys);
    const expected = reference.attention(query, key, value, sizes);
    await context.check(
      { kind: "attention", dtype },
      { input: { query, key, value }, output: { output: context.empty(2) } },
      (slices) => ({ ...slices, ...sizes, ...denseHeads(sizes) }),
      ({ output }, label) => expect(output, label).toAgreeWith(expected, context.sumTolerance(16)),
    );
  });
}
