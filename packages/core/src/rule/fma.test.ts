import { Random } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { fma32, fma64 } from "./fma";

interface Format {
  readonly precision: number;
  /** Exponent of the smallest subnormal. */
  readonly least: number;
  readonly infinity: bigint;
}

const F32: Format = { precision: 24, least: -149, infinity: 2n ** 128n };
const F64: Format = { precision: 53, least: -1074, infinity: 2n ** 1024n };
/** All numbers below are integers times 2^-SCALE: the product of two smallest doubles is 1. */
const SCALE = 2148n;

/** A finite double as an integer times 2^-1074. */
function scaled(x: number): bigint {
  const [sign, exponent] = [x < 0 ? -1n : 1n, Math.max(Math.floor(Math.log2(Math.abs(x))) - 60, -1074)];
  let [rest, power] = [Math.abs(x), exponent];
  for (; power < -1000; power += 50) rest *= 2 ** 50;
  rest *= 2 ** -power;
  return x === 0 ? 0n : (sign * BigInt(rest)) << BigInt(exponent + 1074);
}

/** a * b + c in exact integers, rounded once to nearest even. */
function exactFma(a: number, b: number, c: number, { precision, least, infinity }: Format): number {
  if (![a, b, c].every(Number.isFinite)) return Number.isFinite(a * 0 + b * 0) ? c : a * b + c;
  const sum = scaled(a) * scaled(b) + (scaled(c) << 1074n);
  if (sum === 0n) return a * b + c; // both zero or exact cancellation: IEEE's sign rules hold in the plain expression
  const magnitude = sum < 0n ? -sum : sum;
  const lastBit = Math.max(magnitude.toString(16).length * 4, 0);
  let length = lastBit;
  while (magnitude >> BigInt(length - 1) === 0n) length--;
  const shift = BigInt(Math.max(length - precision, Number(SCALE) + least));
  const [quotient, remainder] = [magnitude >> shift, magnitude & ((1n << shift) - 1n)];
  const half = 1n << (shift - 1n);
  const rounded = (quotient + (remainder > half || (remainder === half && (quotient & 1n) === 1n) ? 1n : 0n)) << shift;
  const sign = sum < 0n ? -1 : 1;
  if (rounded >= infinity << SCALE) return sign * Number.POSITIVE_INFINITY;
  const exponent = Number(shift) - Number(SCALE);
  // Two exact factors: 2^exponent alone may be below the smallest double.
  return sign * (Number(rounded >> shift) * 2 ** Math.max(exponent, -1000)) * 2 ** Math.min(exponent + 1000, 0);
}

function expectExact(fma: typeof fma32, format: Format, a: number, b: number, c: number): void {
  const [actual, expected] = [fma(a, b, c), exactFma(a, b, c, format)];
  if (!Object.is(actual, expected)) expect.fail(`fma(${a}, ${b}, ${c}) must be ${expected}, got ${actual}`);
}

const EDGES = {
  f32: [
    [0, -0, 1, -1, 3, 0.1, 1 + 2 ** -12, 1 + 2 ** -23, 1 - 2 ** -24, 2 ** 24 - 1].map(Math.fround),
    [2 ** -149, -3 * 2 ** -149, 2 ** -126, 2 ** -126 - 2 ** -149, 2 ** -75, 2 ** -100, 2 ** 64, 2 ** 127],
    [2 ** 128 - 2 ** 104, -(2 ** 128 - 2 ** 104), Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
  ].flat(),
  f64: [
    [0, -0, 1, -1, 3, 0.1, 1 + 2 ** -26, 1 + 2 ** -27, 1 - 2 ** -53, 2 ** 53 - 1],
    [2 ** -1074, -3 * 2 ** -1074, 2 ** -1022, 2 ** -1022 - 2 ** -1074, 2 ** -537, 1e-200, 2 ** 512, 2 ** 1023],
    [Number.MAX_VALUE, -Number.MAX_VALUE, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN],
  ].flat(),
};

/** Their product is midway between the largest number and the next power of two: 2^25 - 1 = 31 * 1082401 times a power, 2^54 - 1 too. */
const TIE = {
  f32: [31 * 2 ** 52, 1082401 * 2 ** 51],
  f64: [(2 ** 27 - 1) * 2 ** 485, (2 ** 27 + 1) * 2 ** 485],
} as const;

describe.each([
  { name: "fma32", fma: fma32, format: F32, edges: EDGES.f32, tie: TIE.f32, round: Math.fround, largest: 127 },
  { name: "fma64", fma: fma64, format: F64, edges: EDGES.f64, tie: TIE.f64, round: (x: number) => x, largest: 1023 },
])("$name", ({ fma, format, edges, tie, round, largest }) => {
  it("is exact midway between the largest number and infinity", () => {
    for (const sign of [1, -1])
      for (const c of [0, 2 ** -100, -(2 ** -100), 1, -1]) expectExact(fma, format, sign * tie[0], tie[1], c);
  });

  it("is exact on every triple of edge values", () => {
    for (const a of edges) for (const b of edges) for (const c of edges) expectExact(fma, format, a, b, c);
  });

  it("is exact on random operands of all magnitudes", () => {
    const random = new Random(1);
    const draw = () => round(random.normal() * 2 ** (random.below(2 * largest - 40) - largest + 20));
    for (let i = 0; i < 40_000; i++) expectExact(fma, format, draw(), draw(), draw());
  });

  it("is exact on sums beside the midpoint of two values, where rounding twice errs", () => {
    const random = new Random(2);
    const { precision } = format;
    const mantissa = () => round(1 + Math.floor(random.uniform() * 2 ** (precision - 1)) * 2 ** (1 - precision));
    for (let i = 0; i < 10_000; i++) {
      const sign = random.pick([1, -1]);
      // (1 + u)(1 - u) = 1 - u^2: half a unit of c's last place, less a rest that their sum in the wider format may lose.
      const u = 2 ** -(1 + random.below(precision - 1));
      const half = 2 ** (precision - 1);
      expectExact(fma, format, sign * half * (1 + u), half * (1 - u), mantissa() * 2 ** (3 * precision - 2));
      expectExact(fma, format, mantissa(), mantissa(), sign * mantissa() * 2 ** random.below(2 * precision));
    }
  });

  it("is exact where results are subnormal or overflow", () => {
    const random = new Random(3);
    const nearLeast = () => round(random.normal() * 2 ** (format.least + random.below(format.precision + 4)));
    for (let i = 0; i < 20_000; i++) {
      const power = 2 ** (random.below(largest) - (largest >> 1));
      expectExact(fma, format, round(random.normal() * power), nearLeast(), nearLeast());
      const big = round((1 - random.uniform() / 4) * 2 ** largest);
      expectExact(fma, format, big, round(1 + random.uniform()), round(random.normal() * 2 ** (largest - 2)));
    }
  });
});

it("rounds once where rounding a double rounds twice", () => {
  const a = 1 + 2 ** -12;
  expect(fma32(a, a, -Math.fround(a * a))).toBe(2 ** -24);
});
