import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../testing/fake-backend";
import { compile } from "./compile/compile";
import { tensor } from "./create";
import { bernoulli, multinomial, randint, randperm } from "./draws";
import { Generator } from "./random/generator";
import type { Tensor } from "./tensor/tensor";

const seeded = (seed = 5) => ({ generator: new Generator(seed) });

/** How often each number came. */
function counts(values: ArrayLike<number>, kinds: number): number[] {
  const found = new Array<number>(kinds).fill(0);
  for (const value of Array.from(values)) found[value]!++;
  return found;
}

/** Pearson's statistic is below its 0.999 quantile for the degrees of freedom. */
function expectFrequencies(found: readonly number[], shares: readonly number[], quantile: number): void {
  const total = found.reduce((a, b) => a + b, 0);
  const whole = shares.reduce((a, b) => a + b, 0);
  const statistic = shares.reduce((sum, share, i) => {
    const expected = (total * share) / whole;
    if (expected === 0) return found[i] === 0 ? sum : Number.POSITIVE_INFINITY;
    return sum + (found[i]! - expected) ** 2 / expected;
  }, 0);
  expect(statistic).toBeLessThan(quantile);
}

describe("randint", () => {
  it("is uniform from low to below high", () => {
    const dice = randint(1, 7, [30, 1000], seeded());
    expect([dice.dtype, dice.shape]).toEqual(["i32", [30, 1000]]);
    expectFrequencies(counts(dice.dataSync(), 7), [0, 1, 1, 1, 1, 1, 1], 20.5);
  });

  it("takes a bound alone, dtypes and negative numbers", () => {
    expect([...randint(1, [3]).dataSync()]).toEqual([0, 0, 0]);
    expect(randint(200, 256, [50], { dtype: "u8" }).dataSync()).toBeInstanceOf(Uint8Array);
    const numbers = [...randint(-3, 0, [200], { dtype: "f64", ...seeded() }).dataSync()];
    expect(new Set(numbers)).toEqual(new Set([-3, -2, -1]));
    const wide = [...randint(-(2 ** 31), 2 ** 31, [200], seeded()).dataSync()];
    expect(wide.some((x) => x < -(2 ** 30)) && wide.some((x) => x > 2 ** 30)).toBe(true);
  });

  it.each<[string, () => unknown]>([
    ["an empty range", () => randint(3, 3, [1])],
    ["fractions", () => randint(0.5, 2, [1])],
    ["what u8 does not hold", () => randint(300, [1], { dtype: "u8" })],
    ["what bf16 would round", () => randint(300, [1], { dtype: "bf16" })],
    ["what f16 would round", () => randint(-2050, 0, [1], { dtype: "f16" })],
  ])("throws for %s", (_, run) => expectCode("BAD_ARGUMENT", run));
});

describe("randperm", () => {
  it("gives each order as often", () => {
    const generator = new Generator(3);
    const orders = Array.from({ length: 6000 }, () => randperm(3, { generator }).dataSync());
    expectFrequencies(
      counts(
        orders.map(([a, b, c]) => 2 * a! + Number(b! > c!)),
        6,
      ),
      [1, 1, 1, 1, 1, 1],
      20.5,
    );
  });

  it("is a permutation, also of nothing", () => {
    expect([...randperm(100).dataSync()].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(randperm(0).shape).toEqual([0]);
    expectCode("BAD_ARGUMENT", () => randperm(-1));
    expectCode("BAD_ARGUMENT", () => randperm(300, { dtype: "bf16" }));
  });
});

describe("bernoulli", () => {
  it.each(["f32", "f64", "f16", "bf16"] as const)("has the probabilities of %s", (dtype) => {
    const levels = [0, 0.25, 0.5, 0.999, 1];
    const given = tensor(levels, { dtype }).expand([20_000, 5]);
    const drawn = bernoulli(given, seeded());
    expect([drawn.dtype, drawn.requiresGrad]).toEqual([dtype, false]);
    const shares = [...drawn.mean(0).dataSync()];
    const exact = [...tensor(levels, { dtype }).dataSync()];
    shares.forEach((share, i) => {
      const p = exact[i]!;
      expect(Math.abs(share - p)).toBeLessThanOrEqual(
        4 * Math.sqrt((p * (1 - p)) / 20_000) + (dtype.endsWith("16") ? 4e-3 : 1e-7),
      );
    });
    expect([shares[0], shares[4]]).toEqual([0, 1]);
  });

  it("throws for what is no probability, where it can look", () => {
    for (const p of [-0.1, 1.1, Number.NaN]) expectCode("BAD_ARGUMENT", () => bernoulli(tensor([0.5, p])));
    expectCode("BAD_DTYPE", () => bernoulli(tensor([1], { dtype: "i32" })));
  });
});

describe("multinomial", () => {
  const weights = [1, 0, 4, 2, 0, 3];

  it("draws by weight, with replacement", () => {
    const drawn = multinomial(tensor(weights), 30_000, { replacement: true, ...seeded() });
    expect([drawn.dtype, drawn.shape]).toEqual(["i32", [30_000]]);
    expectFrequencies(counts(drawn.dataSync(), 6), weights, 16.3);
  });

  it("draws each row by its own weights, of any extent", () => {
    for (const extent of [1, 2, 3, 7, 8, 9]) {
      const rows = [0, 1].map((row) =>
        Array.from({ length: extent }, (_, i) => (i % 2 === row || extent === 1 ? i + 1 : 0)),
      );
      const drawn = multinomial(tensor(rows), 5000, { replacement: true, ...seeded(extent) });
      for (const row of [0, 1]) {
        const found = counts(drawn.slice(row, row + 1).dataSync(), extent);
        expectFrequencies(found, rows[row]!, 26);
      }
    }
  });

  it("draws without replacement as PyTorch: the first by weight, the second by what is left", () => {
    const rows = tensor([1, 2, 3]).expand([20_000, 3]);
    const pairs = multinomial(rows, 2, seeded());
    const [first, second] = [0, 1].map((at) => pairs.slice(at, at + 1, 1).dataSync()) as [Int32Array, Int32Array];
    const kinds = [...first].map((a, i) => 3 * a + second[i]!);
    const shares = Array.from({ length: 9 }, (_, k) => {
      const [a, b] = [Math.floor(k / 3), k % 3];
      return a === b ? 0 : ((a + 1) / 6) * ((b + 1) / (5 - a));
    });
    expectFrequencies(counts(kinds, 9), shares, 20.5);
  });

  it("takes what weighs nothing last", () => {
    expect([...multinomial(tensor([0, 2]), 2).dataSync()]).toEqual([1, 0]);
  });

  it.each<[string, () => unknown, "BAD_ARGUMENT" | "BAD_SHAPE" | "BAD_DTYPE"]>([
    ["a negative weight", () => multinomial(tensor([-1, 2]), 1), "BAD_ARGUMENT"],
    ["an infinite weight", () => multinomial(tensor([Number.POSITIVE_INFINITY, 2]), 1), "BAD_ARGUMENT"],
    [
      "a row of zeros",
      () =>
        multinomial(
          tensor([
            [1, 1],
            [0, 0],
          ]),
          1,
        ),
      "BAD_ARGUMENT",
    ],
    ["more than there are", () => multinomial(tensor([1, 2]), 3), "BAD_ARGUMENT"],
    ["none", () => multinomial(tensor([1, 2]), 0), "BAD_ARGUMENT"],
    ["integers", () => multinomial(tensor([1, 2], { dtype: "i32" }), 1), "BAD_DTYPE"],
    ["three axes", () => multinomial(tensor([[[1]]]), 1), "BAD_SHAPE"],
    ["no categories", () => multinomial(tensor([]), 1), "BAD_SHAPE"],
  ])("throws for %s", (_, run, code) => expectCode(code, run));

  it("draws on devices that answer later", async () => {
    const device = new FakeDevice({ async: true });
    const drawn = multinomial(tensor([0, 1, 0], { device }), 4, { replacement: true });
    expect([...(await drawn.data())]).toEqual([1, 1, 1, 1]);
  });
});

it("a generator's seed decides, and a compiled function draws anew in each run", () => {
  const draws = (generator: Generator) => (p: Tensor) => [
    randint(1000, [4], { generator }),
    randperm(9, { generator }),
    bernoulli(p, { generator }),
    multinomial(p, 5, { generator }),
    multinomial(p, 5, { generator, replacement: true }),
  ];
  const p = tensor(Float32Array.from({ length: 12 }, (_, i) => (i + 1) / 13));
  const [plain, recorded] = [draws(new Generator(8)), compile(draws(new Generator(8)), { check: "never" })];
  const runs = [0, 1, 2].map(() => {
    const [eager, compiled] = [plain, recorded].map((run) => run(p).map((x) => [...x.dataSync()]));
    expect(compiled).toEqual(eager);
    return eager;
  });
  expect(runs[1]).not.toEqual(runs[0]);
});
