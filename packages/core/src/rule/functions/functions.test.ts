// Accuracy and special values of the functions of float32, as their definitions are interpreted and as they are generated.
import { SPECIALS, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { functionOf } from "../../js/generated";
import { evaluateFunction, evaluateOp } from "../interpret";
import { FUNCTION_NAMES } from "./index";

const UNARY = ["exp", "log", "tanh", "erf", "sin", "cos", "log1p", "expm1"] as const;
const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

/** The distance of float32 numbers at a value. */
const ulp = (value: number) => 2 ** (Math.max(Math.floor(Math.log2(Math.abs(Math.fround(value)))), -126) - 23);

/** In units of float32's last place at the exact value; infinite where a special result differs. */
function errorOf(actual: number, exact: number): number {
  const rounded = Math.fround(exact);
  if (Object.is(rounded, actual)) return 0;
  const error = Math.abs(actual - exact) / ulp(rounded === 0 ? 1e-45 : rounded);
  return Number.isNaN(error) || actual === 0 || rounded === 0 ? Number.POSITIVE_INFINITY : error;
}

function worst(name: (typeof UNARY)[number], from: number, to: number, step: number): number {
  const compute = functionOf(name);
  let largest = 0;
  for (let pattern = from; pattern < to; pattern += step) {
    bits[0] = pattern;
    const x = float[0]!;
    const error = errorOf(Math.fround(compute(x)), evaluateOp(name, "f64", x));
    if (error > largest) largest = error;
  }
  return largest;
}

/** The first word of [0.5, 1), [1, 2) and so on. */
const wordsFrom = (exponent: number) => (127 + exponent) << 23;

describe("functions of float32", () => {
  it.each([
    ["exp", 0],
    ["log", -1],
    ["tanh", -1],
    ["erf", 0],
    ["sin", 1],
    ["cos", 1],
    ["log1p", -1],
    ["expm1", -2],
  ] as const)("%s is within 0.55 ulp of the numbers of one exponent (%d)", (name, exponent) => {
    const step = triesAll ? 1 : 7;
    expect(worst(name, wordsFrom(exponent), wordsFrom(exponent + 1), step)).toBeLessThan(0.55);
  });

  it.each(UNARY)("%s is within 0.55 ulp at numbers of all signs and exponents", (name) => {
    expect(worst(name, 0, 2 ** 32, 60_013)).toBeLessThan(0.55);
  });

  it("pow is within 0.55 ulp wherever it is finite", () => {
    let state = 1;
    const next = () => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return state >>> 0;
    };
    const pow = functionOf("pow");
    let largest = 0;
    for (let i = 0; i < 200_000; i++) {
      bits[0] = next() & 0x7f7fffff;
      const y = Math.fround((87 / Math.abs(Math.log(float[0]!))) * (next() / 2 ** 31 - 1));
      largest = Math.max(largest, errorOf(Math.fround(pow(float[0]!, y)), float[0]! ** y));
    }
    expect(largest).toBeLessThan(0.55);
  });

  it.each(UNARY)("%s of special numbers is the float64 function's", (name) => {
    for (const x of [
      ...SPECIALS.f32,
      88.72283,
      88.72284,
      -103.97207,
      -103.97208,
      Math.fround(Math.PI),
      2 ** 20,
      1e22,
    ]) {
      const exact = Math.fround(evaluateOp(name, "f64", x));
      expect(errorOf(Math.fround(functionOf(name)(x)), exact), `${name}(${x}), exact ${exact}`).toBeLessThanOrEqual(1);
    }
  });

  it("pow of special numbers is C's", () => {
    const numbers = [
      ...SPECIALS.f32,
      ...[0.5, 2, 3, 1 / 3, 16777215, 16777216, 1e10, 1 - 2 ** -24, 1 + 2 ** -23, 1e-40],
    ];
    const values = numbers.flatMap((x) => [Math.fround(x), Math.fround(-x)]);
    for (const x of values) {
      for (const y of values) {
        const exact = evaluateOp("pow", "f64", x, y);
        expect(errorOf(Math.fround(functionOf("pow")(x, y)), exact), `pow(${x}, ${y})`).toBeLessThanOrEqual(1);
      }
    }
  });

  it("weight is exp to 2e-7 of it up to 71, subnormal where exp is, and 0 below -104", () => {
    const weight = functionOf("weight");
    const half = 2 ** -150;
    let largest = 0;
    for (let i = 0; i <= 200_000; i++) {
      const x = Math.fround(-104 + (i * 175) / 200_000);
      const exact = Math.exp(x);
      largest = Math.max(largest, (Math.abs(Math.fround(weight(x)) - exact) - (x < -87 ? half : 0)) / exact);
    }
    expect(largest).toBeLessThan(2e-7);
    expect(weight(Math.fround(-87.3))).toBeCloseTo(Math.exp(-87.3), 43);
    for (const x of [-104.00001, -150, -1e4, -1e30, -3e38, Number.NEGATIVE_INFINITY]) {
      expect(weight(Math.fround(x))).toBe(0);
    }
    expect(weight(Number.NaN)).toBeNaN();
  });

  it.each(FUNCTION_NAMES)("%s has the same bits generated and interpreted", (name) => {
    for (let pattern = 0; pattern < 2 ** 32; pattern += 2 ** 32 / 2000 - 17) {
      bits[0] = pattern;
      const x = float[0]!;
      for (const y of name === "pow" ? [0.5, -3, Number.NaN] : [0]) {
        const [generated, interpreted] = [functionOf(name)(x, y), evaluateFunction(name, x, y)];
        if (!Object.is(generated, interpreted)) expect(generated, `${name}(${x}, ${y})`).toBe(interpreted);
      }
    }
  });
});
