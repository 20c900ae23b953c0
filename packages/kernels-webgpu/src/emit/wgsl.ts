/** The WGSL dialect. WGSL has neither NaN nor infinity as literals, and lets devices assume that they do not occur. */
import { OptError } from "@opt/core";
import type { ComputeDType, Dialect, OpText } from "@opt/core/backend";

/** WGSL has no 64-bit floats. */
const f64: OpText = () => {
  throw new OptError("UNSUPPORTED", "webgpu", "WGSL computes in f32, got f64.", `Cast with .to("f32").`);
};

/** Sums with constants stay as they are written: programs take back what rounding took, as in (1 + x) - 1 (Kahan). */
const LITERAL = /^(vec4f\()?\(?-?\d[\d.e+-]*f\)*$/;
const sum =
  (sign: "+" | "-", exactly: string): OpText =>
  (a, b) =>
    LITERAL.test(a) || LITERAL.test(b) ? `${exactly}(${a} ${sign} ${b})` : `(${a} ${sign} ${b})`;

function f32(write: OpText): Record<ComputeDType, OpText> {
  return { f32: write, f64 };
}

export const wgsl: Dialect = {
  name: "wgsl",
  constant(value) {
    const number = Math.fround(value);
    if (Number.isNaN(number)) return "bitcast<f32>(nanBits)";
    if (Math.abs(number) === Number.POSITIVE_INFINITY)
      return `bitcast<f32>(${number > 0 ? "" : "minus"}${number > 0 ? "i" : "I"}nfinityBits)`;
    return Object.is(number, -0) ? "(-0f)" : number < 0 ? `(${number}f)` : `${number}f`;
  },
  declare: (name, value) => `let ${name} = ${value};`,
  ops: {
    add: f32(sum("+", "exactly")),
    sub: f32(sum("-", "exactly")),
    mul: f32((a, b) => `(${a} * ${b})`),
    div: f32((a, b) => `(${a} / ${b})`),
    neg: f32((a) => `(-${a})`),
    abs: f32((a) => `abs(${a})`),
    sqrt: f32((a) => `sqrt(${a})`),
    fma: f32((a, b, c) => `fma(${a}, ${b}, ${c})`),
    max: f32((a, b) => `select(${a}, ${b}, ${a} < ${b})`),
    min: f32((a, b) => `select(${a}, ${b}, ${b} < ${a})`),
    less: f32((a, b) => `(${a} < ${b})`),
    select: f32((a, b, c) => `select(${c}, ${b}, ${a})`),
    exp: f32((a) => `exponential(${a})`),
    log: f32((a) => `logarithm(${a})`),
    tanh: f32((a) => `hyperbolic_tangent(${a})`),
    erf: f32((a) => `error_function(${a})`),
    sin: f32((a) => `sine(${a})`),
    cos: f32((a) => `cosine(${a})`),
    pow: f32((a, b) => `power(${a}, ${b})`),
    log1p: f32((a) => `log_of_more(${a})`),
    expm1: f32((a) => `exp_less_one(${a})`),
  },
};

/** The same on four elements at once, in which numbers are spread. */
export const wgslQuads: Dialect = {
  ...wgsl,
  name: "wgsl quads",
  constant: (value, dtype) => `vec4f(${wgsl.constant(value, dtype)})`,
  ops: {
    ...wgsl.ops,
    add: f32(sum("+", "exactly_quads")),
    sub: f32(sum("-", "exactly_quads")),
    exp: f32((a) => `exponential_quads(${a})`),
    log: f32((a) => `logarithm_quads(${a})`),
    tanh: f32((a) => `hyperbolic_tangent_quads(${a})`),
    erf: f32((a) => `error_function_quads(${a})`),
    sin: f32((a) => `sine_quads(${a})`),
    cos: f32((a) => `cosine_quads(${a})`),
    pow: f32((a, b) => `power_quads(${a}, ${b})`),
    log1p: f32((a) => `log_of_more_quads(${a})`),
    expm1: f32((a) => `exp_less_one_quads(${a})`),
  },
};

const notOfIntegers: OpText = () => {
  throw new OptError("UNSUPPORTED", "webgpu", "an op of floats, got i32.", `Cast with .to("f32").`);
};

/** The same ops on i32, which wraps as everywhere: its words stand where the others' floats do. */
export const wgslIntegers: Dialect = {
  ...wgsl,
  name: "wgsl integers",
  constant: (value) => (value < 0 ? `(${value}i)` : `${value}i`),
  ops: {
    ...wgsl.ops,
    add: f32((a, b) => `(${a} + ${b})`),
    sub: f32((a, b) => `(${a} - ${b})`),
    fma: f32((a, b, c) => `(${a} * ${b} + ${c})`),
    pow: f32(notOfIntegers),
    div: f32(notOfIntegers),
    sqrt: f32(notOfIntegers),
    exp: f32(notOfIntegers),
    log: f32(notOfIntegers),
    tanh: f32(notOfIntegers),
    erf: f32(notOfIntegers),
    sin: f32(notOfIntegers),
    cos: f32(notOfIntegers),
    log1p: f32(notOfIntegers),
    expm1: f32(notOfIntegers),
  },
};

/** Bits of values that are no literals; variables, so that the compiler does not fold them into an error. */
export const NON_FINITE = `
var<private> nanBits: u32 = 0x7fc00000u;
var<private> infinityBits: u32 = 0x7f800000u;
var<private> minusInfinityBits: u32 = 0xff800000u;`;
