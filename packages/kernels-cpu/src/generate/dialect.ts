/** The C++ dialect: one text for float32 and float64, as a template over T. */
import type { BitOp, ComputeDType, Dialect, Op, OpText } from "@opt/core/backend";

/** Calls name functions of native/cpu/src/kernels/arithmetic.h and functions.h, one overload per type. */
function both(write: OpText): Record<ComputeDType, OpText> {
  return { f32: write, f64: write };
}

const unary = (name: string) => both((a) => `${name}(${a})`);

export const cpp: Dialect = {
  name: "cpp",
  constant(value) {
    if (Number.isNaN(value)) return "T(NAN)";
    if (!Number.isFinite(value)) return value > 0 ? "T(INFINITY)" : "T(-INFINITY)";
    if (Object.is(value, -0)) return "T(-0.0)";
    const text = String(value);
    return `T(${/[.e]/.test(text) ? text : `${text}.0`})`;
  },
  declare: (name, value, _dtype, kind) => `const ${kind === "condition" ? "auto" : "T"} ${name} = ${value};`,
  ops: {
    add: both((a, b) => `(${a} + ${b})`),
    sub: both((a, b) => `(${a} - ${b})`),
    mul: both((a, b) => `(${a} * ${b})`),
    div: both((a, b) => `(${a} / ${b})`),
    neg: both((a) => `(-${a})`),
    abs: unary("abs"),
    sqrt: unary("sqrt"),
    fma: both((a, b, c) => `fma(${a}, ${b}, ${c})`),
    max: both((a, b) => `max(${a}, ${b})`),
    min: both((a, b) => `min(${a}, ${b})`),
    less: both((a, b) => `(${a} < ${b})`),
    select: both((a, b, c) => `select(${a}, ${b}, ${c})`),
    exp: unary("exp"),
    log: unary("log"),
    tanh: unary("tanh"),
    erf: unary("erf"),
    sin: unary("sin"),
    cos: unary("cos"),
    pow: both((a, b) => `pow(${a}, ${b})`),
    log1p: unary("log1p"),
    expm1: unary("expm1"),
    flipsign: both((a, b) => `flipsign(${a}, ${b})`),
    power2: unary("power2"),
    exponent: unary("exponent"),
    significand: unary("significand"),
  } satisfies Record<Op | BitOp, Record<ComputeDType, OpText>>,
};
