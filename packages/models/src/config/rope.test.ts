/** Scaled frequencies lie between those of the model's own context and their part, and are these where nothing is scaled. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { inverseFrequencies, readRope } from "./rope";

const drawn = fc.record({
  kind: fc.constantFrom("linear", "dynamic", "llama3", "yarn"),
  ...{ factor: fc.constantFrom(1, 1.5, 8), theta: fc.constantFrom(100, 1e4), positions: fc.constantFrom(16, 64) },
  ...{ width: fc.constantFrom(4, 16), length: fc.integer({ min: 1, max: 200 }), truncate: fc.boolean() },
});

it("of every kind", () => {
  fc.assert(
    fc.property(drawn, ({ kind, factor, theta, positions, width, length, truncate }) => {
      const own = kind === "llama3" ? { low_freq_factor: 1, high_freq_factor: 4 } : kind === "yarn" ? { truncate } : {};
      const frequencies = (given: object) => [...inverseFrequencies(readRope(given, theta, positions), width, length)];
      const [plain, scaled] = [frequencies({}), frequencies({ rope_type: kind, factor, ...own })];
      const isWhole = kind === "dynamic" ? length <= positions : factor === 1;
      for (const [i, x] of plain.entries()) {
        expect(x).toBeCloseTo(theta ** ((-2 * i) / width), 6);
        expect(scaled[i]! / x).toBeLessThanOrEqual(1 + 1e-6);
        const least = kind === "dynamic" ? 0 : 1 / factor;
        expect(scaled[i]! / x).toBeGreaterThanOrEqual((isWhole ? 1 : least) - 1e-6);
      }
      if (factor > 1 && !isWhole) expect(scaled.at(-1)! / plain.at(-1)!).toBeLessThan(1);
    }),
    { seed: 1, numRuns: 200 },
  );
});

it("yarn's factor of the scores, by whichever fields a file has", () => {
  const some = fc.option(fc.constantFrom(0, 0.5, 2), { nil: undefined });
  const fields = fc.record({
    factor: fc.constantFrom(1, 4),
    mscale: some,
    mscale_all_dim: some,
    attention_factor: some,
  });
  fc.assert(
    fc.property(fields, ({ factor, mscale, mscale_all_dim: all, attention_factor: own }) => {
      const of = (scale: number) => (factor > 1 ? 0.1 * scale * Math.log(factor) + 1 : 1);
      const json = { rope_type: "yarn", factor, mscale, mscale_all_dim: all, attention_factor: own };
      expect(readRope(json, 1e4, 16).attention).toBeCloseTo(own ?? (mscale && all ? of(mscale) / of(all) : of(1)), 12);
    }),
    { seed: 1, numRuns: 100 },
  );
});
