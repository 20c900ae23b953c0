import { Random } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { fma32, fma64 } from "../rule/fma";
import { multiply } from "./matmul";

const [M, N, K] = [16, 15, 6];

describe.each([
  { dtype: "f32" as const, fma: fma32, elements: Float32Array, precision: 24, least: -149, largest: 127 },
  { dtype: "f64" as const, fma: fma64, elements: Float64Array, precision: 53, least: -1074, largest: 1023 },
])("$dtype", ({ dtype, fma, elements, precision, least, largest }) => {
  const fewBits = (random: Random) => 1 + 2 ** -random.below(precision) - 2 ** -random.below(precision);
  const sign = (random: Random) => random.pick([1, -1]);
  it.each<[string, number, (random: Random) => number]>([
    ["normal numbers", 60, (random) => random.normal()],
    ["small integers and zeros", 20, (random) => random.below(7) - 3],
    ["few bits, so that sums lie on and beside midpoints", 150, (random) => sign(random) * fewBits(random)],
    [
      "few bits of distant exponents",
      150,
      (random) => {
        return sign(random) * fewBits(random) * 2 ** (random.below(2 * precision) - precision);
      },
    ],
    ["all magnitudes", 60, (random) => random.normal() * 2 ** (least / 2 + random.below(largest - least / 2))],
    ["results among the subnormal", 60, (random) => fewBits(random) * 2 ** (least / 2 + random.below(precision))],
    ["results at the largest number", 60, (random) => sign(random) * fewBits(random) * 2 ** (largest / 2 + 0.5)],
    [
      "special values",
      20,
      (random) => {
        return random.pick([0, -0, 1, -1, 2 ** least, -(2 ** largest), Number.POSITIVE_INFINITY, Number.NaN]);
      },
    ],
  ])("is a chain of fused multiply-adds of %s", (_, rounds, draw) => {
    const random = new Random(1);
    const expected = new elements(M * N);
    const actual = new elements(M * N);
    for (let round = 0; round < rounds; round++) {
      const A = new elements(Array.from({ length: M * K }, () => draw(random)));
      const B = new elements(Array.from({ length: K * N }, () => draw(random)));
      const [transposeA, transposeB] = [random.below(2) === 1, random.below(2) === 1];
      for (let i = 0; i < M; i++) {
        for (let j = 0; j < N; j++) {
          let sum = 0;
          for (let p = 0; p < K; p++) {
            sum = fma(A[transposeA ? p * M + i : i * K + p]!, B[transposeB ? j * K + p : p * N + j]!, sum);
          }
          expected[i * N + j] = sum;
        }
      }
      const sizes = { batch: 1, m: M, n: N, k: K, strideA: 0, strideB: 0 };
      multiply({ dtype, transposeA, transposeB }, A, B, actual, sizes);
      const wrong = actual.findIndex((word, at) => !Object.is(word, expected[at]));
      if (wrong >= 0) expect.fail(`element ${wrong} must be ${expected[wrong]}, got ${actual[wrong]}`);
    }
  });
});
