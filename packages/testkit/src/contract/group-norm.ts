/** Group normalisation and its gradient, on devices that have them. */
import { describe, expect, it } from "vitest";
import * as reference from "../reference/group-norm";
import { type ContractContext, LARGE } from "./context";
import { cancelling } from "./sums";
import "../numbers/matcher";

/** outer, channels, inner, groups: runs of one place, below a vector and beyond a chunk, one channel a group and all of them. */
const SIZES: readonly (readonly [number, number, number, number])[] = [
  [2, 4, 1, 2],
  [3, 6, 7, 2],
  [2, 67, 16, 1],
  [2, 6, 1027, 6],
  [1, 2, LARGE, 1],
  [0, 4, 4, 2],
  [2, 0, 4, 3],
  [2, 4, 0, 2],
];

export function groupNormContract(context: ContractContext): void {
  const { dtype } = context;
  const eps = 1e-5;

  describe("groupNorm", () => {
    const of = ([outer, channels, inner, groups]: (typeof SIZES)[number]) => {
      const sizes = { outer, channels, inner, groups, eps };
      const empty = {
        forward: () => ({
          output: context.empty(outer * channels * inner),
          mean: context.empty(outer * groups),
          variance: context.empty(outer * groups),
        }),
        backward: () => ({
          inputGradient: context.empty(outer * channels * inner),
          weightGradient: context.empty(outer * channels),
          biasGradient: context.empty(outer * channels),
        }),
      };
      const drawn = (seed: number) => context.seeded(outer * channels * inner, seed);
      return { sizes, empty, drawn, weight: context.seeded(channels, 2), bias: context.seeded(channels, 3) };
    };

    it.each(context.cases(SIZES))("of [%d, %d, %d] in %d groups", async (...extents) => {
      const { sizes, empty, drawn, weight, bias } = of(extents);
      const input = drawn(1);
      const expected = reference.groupNorm(input, weight, bias, sizes);
      await context.check(
        { kind: "groupNorm", dtype },
        { input: { input, weight, bias }, output: empty.forward() },
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          for (const name of ["output", "mean", "variance"] as const)
            expect(results[name], `${name}, ${label}`).toAgreeWith(expected[name], context.sumTolerance(64));
        },
      );
    });

    it.each(context.cases(SIZES))("gradient of [%d, %d, %d] in %d groups", async (...extents) => {
      const { sizes, empty, drawn, weight } = of(extents);
      const [input, gradient] = [drawn(5), drawn(6)];
      const forward = reference.groupNorm(input, weight, weight, sizes);
      const [mean, variance] = [context.empty(forward.mean.length), context.empty(forward.mean.length)];
      mean.set(forward.mean);
      variance.set(forward.variance);
      const expected = reference.groupNormGrad(input, weight, mean, variance, gradient, sizes);
      const largest = forward.variance.reduce((a, b) => Math.max(a, 1 / Math.sqrt(b + eps)), 1);
      await context.check(
        { kind: "groupNormGrad", dtype },
        { input: { input, weight, mean, variance, gradient }, output: empty.backward() },
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          expect(results.inputGradient, `input, ${label}`).toAgreeWith(
            expected.inputGradient,
            context.sumTolerance(32 * largest),
          );
          const total = context.sumTolerance(16 * sizes.inner);
          expect(results.weightGradient, `weight, ${label}`).toAgreeWith(expected.weightGradient, total);
          expect(results.biasGradient, `bias, ${label}`).toAgreeWith(expected.biasGradient, total);
        },
      );
    });

    it("normalises groups far from zero: the variance is not a difference of squares", async () => {
      const { sizes, empty, drawn, weight, bias } = of([3, 4, 10, 2]);
      const input = drawn(4).map((x) => x + 1000);
      const expected = reference.groupNorm(input, weight, bias, sizes);
      await context.check(
        { kind: "groupNorm", dtype },
        { input: { input, weight, bias }, output: empty.forward() },
        (slices) => ({ ...slices, ...sizes }),
        // The mean, near 1000, is known to an epsilon of that.
        ({ output }, label) => expect(output, label).toAgreeWith(expected.output, context.sumTolerance(128)),
      );
    });

    if (context.hasWords)
      it("has the words of js", async () => {
        for (const extents of [...context.cases(SIZES), [2, 6, 15, 3], [2, 4, 17, 2], [1, 2, 32_769, 2]] as const) {
          const { sizes, empty, drawn, weight, bias } = of(extents);
          const runs = sizes.outer * sizes.channels;
          const input = cancelling(drawn(1), runs, sizes.inner, 1);
          const gradient = cancelling(drawn(10), runs, sizes.inner, 1);
          await context.checkWords(
            { kind: "groupNorm", dtype },
            { input: { input, weight, bias }, output: empty.forward() },
            (slices) => ({ ...slices, ...sizes }),
          );
          const groups = sizes.outer * sizes.groups;
          const statistics = {
            mean: context.seeded(groups, 8),
            variance: context.seeded(groups, 9, { nonNegative: true }),
          };
          await context.checkWords(
            { kind: "groupNormGrad", dtype },
            { input: { input, weight, ...statistics, gradient }, output: empty.backward() },
            (slices) => ({ ...slices, ...sizes }),
          );
        }
      });
  });
}
