/** Batch normalisation and its gradient, on devices that have them. */
import { describe, expect, it } from "vitest";
import * as reference from "../reference/batch-norm";
import { type ContractContext, LARGE } from "./context";
import { cancelling } from "./sums";
import "../numbers/matcher";

/** outer, channels, inner: few neighbours of a channel and many, channels below and beyond 64. */
const SIZES: readonly (readonly [number, number, number])[] = [
  [2, 1, 1],
  [17, 130, 1],
  [3, 5, 7],
  [4, 67, 16],
  [2, 3, 1027],
  [1, 2, LARGE],
  [0, 3, 4],
  [2, 0, 4],
];

export function batchNormContract(context: ContractContext): void {
  const { dtype } = context;
  const eps = 1e-5;

  describe("batchNorm", () => {
    const of = (extents: (typeof SIZES)[number]) => {
      const [outer, channels, inner] = extents;
      const sizes = { outer, channels, inner, eps };
      return { sizes, channels, input: context.seeded(outer * channels * inner, 1) };
    };

    it.each(context.cases(SIZES))("of [%d, %d, %d]", async (...extents) => {
      const { sizes, channels, input } = of(extents);
      const [weight, bias] = [context.seeded(channels, 2), context.seeded(channels, 3)];
      const expected = reference.batchNorm(input, weight, bias, sizes);
      const output = {
        output: context.empty(input.length),
        mean: context.empty(channels),
        variance: context.empty(channels),
      };
      await context.check(
        { kind: "batchNorm", dtype },
        { input: { input, weight, bias }, output },
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          for (const name of ["output", "mean", "variance"] as const) {
            expect(results[name], `${name}, ${label}`).toAgreeWith(expected[name], context.sumTolerance(64));
          }
        },
      );
    });

    if (context.hasWords)
      it("has the words of js", async () => {
        for (const extents of [
          ...context.cases(SIZES),
          [3, 4, 15],
          [2, 3, 17],
          [2, 2, 32_769],
          [300, 11, 1],
        ] as const) {
          const { sizes, channels, input } = of(extents);
          const width = channels * sizes.inner;
          cancelling(input, 1, sizes.outer, width);
          cancelling(input, sizes.outer * channels, sizes.inner, 1);
          const gradient = cancelling(context.seeded(input.length, 10), sizes.outer * channels, sizes.inner, 1);
          const [weight, bias] = [context.seeded(channels, 7), context.seeded(channels, 8)];
          const ofChannels = () => context.empty(channels);
          await context.checkWords(
            { kind: "batchNorm", dtype },
            {
              input: { input, weight, bias },
              output: { output: context.empty(input.length), mean: ofChannels(), variance: ofChannels() },
            },
            (slices) => ({ ...slices, ...sizes }),
          );
          const variance = context.seeded(channels, 9, { nonNegative: true });
          await context.checkWords(
            { kind: "batchNormGrad", dtype },
            {
              input: { input, weight, mean: bias, variance, gradient: cancelling(gradient, 1, sizes.outer, width) },
              output: {
                inputGradient: context.empty(input.length),
                weightGradient: ofChannels(),
                biasGradient: ofChannels(),
              },
            },
            (slices) => ({ ...slices, ...sizes }),
          );
        }
      });

    it("normalises channels far from zero: the variance is not a difference of squares", async () => {
      const sizes = { outer: 3, channels: 2, inner: 20, eps };
      const input = context.seeded(120, 4).map((x) => x + 1000);
      const [weight, bias] = [context.empty(2).fill(1), context.empty(2)];
      const expected = reference.batchNorm(input, weight, bias, sizes);
      await context.check(
        { kind: "batchNorm", dtype },
        {
          input: { input, weight, bias },
          output: { output: context.empty(120), mean: context.empty(2), variance: context.empty(2) },
        },
        (slices) => ({ ...slices, ...sizes }),
        // The mean, near 1000, is known to an epsilon of that.
        ({ output }, label) => expect(output, label).toAgreeWith(expected.output, context.sumTolerance(128)),
      );
    });

    it.each(context.cases(SIZES))("gradient of [%d, %d, %d]", async (...extents) => {
      const { sizes, channels, input } = of(extents);
      const [weight, gradient] = [context.seeded(channels, 5), context.seeded(input.length, 6)];
      const forward = reference.batchNorm(input, weight, weight, sizes);
      const [mean, variance] = [context.empty(channels), context.empty(channels)];
      mean.set(forward.mean);
      variance.set(forward.variance);
      const expected = reference.batchNormGrad(input, weight, mean, variance, gradient, sizes);
      const output = {
        inputGradient: context.empty(input.length),
        weightGradient: context.empty(channels),
        biasGradient: context.empty(channels),
      };
      const largest = forward.variance.reduce((a, b) => Math.max(a, 1 / Math.sqrt(b + eps)), 1);
      await context.check(
        { kind: "batchNormGrad", dtype },
        { input: { input, weight, mean, variance, gradient }, output },
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          expect(results.inputGradient, `input, ${label}`).toAgreeWith(
            expected.inputGradient,
            context.sumTolerance(32 * largest),
          );
          const total = context.sumTolerance(16 * sizes.outer * sizes.inner);
          expect(results.weightGradient, `weight, ${label}`).toAgreeWith(expected.weightGradient, total);
          expect(results.biasGradient, `bias, ${label}`).toAgreeWith(expected.biasGradient, total);
        },
      );
    });
  });
}
