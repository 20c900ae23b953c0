/**
 * Writes src/rule/functions/coefficients.ts. Polynomials are interpolated at Chebyshev nodes (within a small factor of minimax), a quotient
 * of two is nearly minimax. Each has its largest relative error in its comment.
 * Run from the root: npx tsx --conditions=@opt/source packages/core/tools/coefficients.ts
 */
import { writeFileSync } from "node:fs";
import { erf } from "../src/rule/erf";

/** Coefficients, lowest power first, of the polynomial in u = (x - middle) / halfWidth through f at n + 1 Chebyshev nodes. */
function interpolate(f: (x: number) => number, from: number, to: number, degree: number): number[] {
  const nodes = Array.from({ length: degree + 1 }, (_, k) => Math.cos((Math.PI * (k + 0.5)) / (degree + 1)));
  const values = nodes.map((u) => f((from + to) / 2 + (u * (to - from)) / 2));
  const sum = new Array<number>(degree + 1).fill(0);
  let previous: number[] = [];
  let chebyshev = [1];
  for (let k = 0; k <= degree; k++) {
    const projection = values.reduce((s, v, j) => s + v * Math.cos((k * Math.PI * (j + 0.5)) / (degree + 1)), 0);
    chebyshev.forEach((c, power) => {
      sum[power]! += ((k === 0 ? 1 : 2) / (degree + 1)) * projection * c;
    });
    const next = [0, ...chebyshev.map((c) => (k === 0 ? c : 2 * c))].map((c, power) => c - (previous[power] ?? 0));
    [previous, chebyshev] = [chebyshev, next];
  }
  return sum;
}

/** The same in powers of x itself. */
function inPowersOfX(coefficients: number[], from: number, to: number): number[] {
  const scale = 2 / (to - from);
  const shift = -(from + to) / (to - from);
  let result = [0];
  for (const c of [...coefficients].reverse()) {
    const product = new Array<number>(result.length + 1).fill(0);
    result.forEach((r, power) => {
      product[power]! += r * shift;
      product[power + 1]! += r * scale;
    });
    product[0]! += c;
    result = product;
  }
  return result.slice(0, coefficients.length);
}

const horner = (coefficients: number[], x: number) => coefficients.reduceRight((sum, c) => sum * x + c, 0);

function worstError(p: (x: number) => number, f: (x: number) => number, from: number, to: number): number {
  let worst = 0;
  for (let i = 0; i <= 10_000; i++) {
    const x = from + ((to - from) * i) / 10_000;
    worst = Math.max(worst, Math.abs(p(x) / f(x) - 1));
  }
  return worst;
}

/** In as few digits as cost a small part of the error: pages carry them. `reach`: the largest argument, `least`: the smallest value. */
function shortened(coefficients: readonly number[], error: number, reach: number, least: number): number[] {
  return coefficients.map((c, power) => {
    const tolerance = ((error / 32) * least) / reach ** power;
    for (let digits = 1; ; digits++) {
      const short = Number(c.toPrecision(digits));
      if (Math.abs(short - c) <= tolerance || digits === 17) return short;
    }
  });
}

const atZero = (value: number, f: (x: number) => number) => (x: number) => (Math.abs(x) < 1e-9 ? value : f(x));
const ofSquare = (value: number, f: (root: number) => number) => atZero(value, (t) => f(Math.sqrt(t)));

const lines = [
  "/** Written by tools/coefficients.ts. Polynomial coefficients, lowest power first. */",
  "// biome-ignore-all lint/suspicious/noApproximativeNumericConstant: in as few digits as cost a small part of the error.",
];
function add(
  name: string,
  meaning: string,
  f: (x: number) => number,
  from: number,
  to: number,
  degree: number,
  centred = false,
): void {
  const inU = interpolate(f, from, to, degree);
  const exact = centred ? inU : inPowersOfX(inU, from, to);
  const argument = centred ? (x: number) => (x - (from + to) / 2) / ((to - from) / 2) : (x: number) => x;
  const errorOf = (coefficients: number[]) => worstError((x) => horner(coefficients, argument(x)), f, from, to);
  const reach = Math.max(Math.abs(argument(from)), Math.abs(argument(to)));
  const least = Math.min(...Array.from({ length: 101 }, (_, i) => Math.abs(f(from + ((to - from) * i) / 100))));
  const coefficients = shortened(exact, errorOf(exact), reach, least);
  const error = errorOf(coefficients);
  lines.push("", `/** ${meaning}; relative error ${error.toExponential(1)}. */`);
  lines.push(`export const ${name} = [${coefficients.join(", ")}];`);
}

add(
  "EXP2M1",
  "(2^r - 1) / r for |r| <= 1 / 2",
  atZero(Math.LN2, (r) => Math.expm1(r * Math.LN2) / r),
  -1 / 2,
  1 / 2,
  6,
);
const halfLn2 = Math.LN2 / 2;
add(
  "EXPM1",
  "(exp(r) - 1) / r for |r| <= ln(2) / 2, in float32",
  atZero(1, (r) => Math.expm1(r) / r),
  -halfLn2,
  halfLn2,
  5,
);
const largest = (Math.SQRT2 - 1) / (Math.SQRT2 + 1);
add(
  "LOG2",
  "2 atanh(s) / (ln(2) s) in t = s^2, for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]",
  ofSquare(2 / Math.LN2, (s) => (2 * Math.atanh(s)) / (Math.LN2 * s)),
  0,
  largest ** 2,
  4,
);
add(
  "SIN",
  "sin(r) / r in t = r^2, for |r| <= pi / 2",
  ofSquare(1, (r) => Math.sin(r) / r),
  0,
  (Math.PI / 2) ** 2,
  5,
);
/** The x of least squares of A x = b, by orthogonal columns (Gram and Schmidt, modified). */
function leastSquares(a: readonly (readonly number[])[], b: readonly number[]): number[] {
  const count = a[0]!.length;
  const columns = Array.from({ length: count }, (_, j) => a.map((row) => row[j]!));
  const rest = [...b];
  const dot = (x: readonly number[], y: readonly number[]) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  const subtract = (x: number[], factor: number, y: readonly number[]) => {
    for (let i = 0; i < x.length; i++) x[i]! -= factor * y[i]!;
  };
  const upper = columns.map((column, j) => {
    const norm = Math.sqrt(dot(column, column));
    for (let i = 0; i < column.length; i++) column[i]! /= norm;
    const later = columns.slice(j + 1).map((other) => {
      const share = dot(column, other);
      subtract(other, share, column);
      return share;
    });
    const share = dot(column, rest);
    subtract(rest, share, column);
    return { norm, later, share };
  });
  const x = new Array<number>(count).fill(0);
  for (let j = count - 1; j >= 0; j--) {
    const { norm, later, share } = upper[j]!;
    x[j] = (share - later.reduce((sum, value, k) => sum + value * x[j + 1 + k]!, 0)) / norm;
  }
  return x;
}

/** The quotient of polynomials of these degrees that is nearest to f, relatively: squares, weighed more each time where the error is large (Lawson 1961). */
function quotient(f: (x: number) => number, from: number, to: number, above: number, below: number) {
  const nodes = Array.from({ length: 1000 }, (_, k) => Math.cos((Math.PI * (k + 0.5)) / 1000));
  const values = nodes.map((u) => f((from + to) / 2 + (u * (to - from)) / 2));
  const chebyshev = (u: number, degree: number) => Math.cos(degree * Math.acos(u));
  const bases = nodes.map((u) => Array.from({ length: Math.max(above, below) + 1 }, (_, k) => chebyshev(u, k)));
  let weights = nodes.map(() => 1);
  let divisors = nodes.map(() => 1);
  let best = { error: Number.POSITIVE_INFINITY, found: [] as number[] };
  for (let round = 0; round < 300; round++) {
    const scales = nodes.map((_, i) => Math.sqrt(weights[i]!) / (values[i]! * divisors[i]!));
    const rows = bases.map((basis, i) => [
      ...basis.slice(0, above + 1).map((t) => t * scales[i]!),
      ...basis.slice(1, below + 1).map((t) => -t * values[i]! * scales[i]!),
    ]);
    const found = leastSquares(
      rows,
      values.map((value, i) => value * scales[i]!),
    );
    const sumOf = (basis: readonly number[], some: readonly number[]) =>
      some.reduce((sum, c, k) => sum + c * basis[k]!, 0);
    divisors = bases.map((basis) => sumOf(basis, [1, ...found.slice(above + 1)]));
    const errors = bases.map((basis, i) =>
      Math.abs(sumOf(basis, found.slice(0, above + 1)) / divisors[i]! / values[i]! - 1),
    );
    const error = Math.max(...errors);
    if (error < best.error) best = { error, found };
    weights = weights.map((weight, i) => weight * (errors[i]! / error + 1e-3));
    const mean = weights.reduce((a, b) => a + b) / weights.length;
    weights = weights.map((weight) => weight / mean);
  }
  // A sum of Chebyshev's polynomials in u is one of cosines: the same polynomial by interpolation.
  const inX = (some: readonly number[]) => {
    const value = (x: number) => {
      const u = (2 * x - from - to) / (to - from);
      return some.reduce((sum, c, k) => sum + c * chebyshev(Math.max(-1, Math.min(1, u)), k), 0);
    };
    return inPowersOfX(interpolate(value, from, to, some.length - 1), from, to);
  };
  const [over, under] = [inX(best.found.slice(0, above + 1)), inX([1, ...best.found.slice(above + 1)])];
  return [over.map((c) => c / under[0]!), under.map((c) => c / under[0]!)] as const;
}

const ofErf = ofSquare(2 / Math.sqrt(Math.PI), (x) => erf(x) / x);
const halves = quotient(ofErf, 0, 16, 5, 6);
const errorOf = ([over, under]: readonly (readonly number[])[]) =>
  worstError((t) => horner([...over!], t) / horner([...under!], t), ofErf, 0, 16);
const short = halves.map((half) => shortened(half, errorOf(halves), 16, 1));
lines.push(
  "",
  `/** erf(x) / x in t = x^2 for |x| <= 4, as a quotient; relative error ${errorOf(short).toExponential(1)}. */`,
);
lines.push(`export const ERF = [[${short.map((half) => half.join(", ")).join("], [")}]];`);

/** floor(pi * 2^bits), by Machin's formula. */
function pi(bits: number): bigint {
  const guard = 32n;
  const one = 1n << (BigInt(bits) + guard);
  const arctanOfInverse = (n: bigint) => {
    let term = one / n;
    let sum = term;
    for (let k = 1n; term !== 0n; k++) {
      term /= n * n;
      sum += (k % 2n === 0n ? term : -term) / (2n * k + 1n);
    }
    return sum;
  };
  return (4n * (4n * arctanOfInverse(5n) - arctanOfInverse(239n))) >> guard;
}

/** pi cut into pieces of 33 bits, so that their products with numbers of 20 bits are exact, and a rest. */
const precise = pi(400);
const cut = (from: number, count: number) => {
  // Bit i of the fraction has weight 2^-i.
  const upTo = (i: number) => (precise >> BigInt(400 - i)) << BigInt(400 - i);
  return Number(upTo(from + count) - (from < 0 ? 0n : upTo(from))) / 2 ** 400;
};
lines.push("", "/** pi in three parts, the first two of 33 bits. */");
lines.push(`export const PI = [${cut(-2, 33)}, ${cut(31, 33)}, ${cut(64, 53)}];`);

writeFileSync(new URL("../src/rule/functions/coefficients.ts", import.meta.url), `${lines.join("\n")}\n`);
