/** The CUDA dialect: rounding is spelled out in every op, so that no compiler option can change a bit. */
import type { BitOp, ComputeDType, Dialect, Op, OpText } from "@opt/core/backend";

/** A pair of intrinsics, rounding to nearest even. */
function rounded(f32: string, f64: string): Record<ComputeDType, OpText> {
  return { f32: (a, b) => `${f32}(${a}, ${b})`, f64: (a, b) => `${f64}(${a}, ${b})` };
}

function both(write: OpText): Record<ComputeDType, OpText> {
  return { f32: write, f64: write };
}

/** A function of native/cuda/kernels/elements.cuh, or of what it includes, one overload per type. */
const unary = (name: string) => both((a) => `${name}(${a})`);
const binary = (name: string) => both((a, b) => `${name}(${a}, ${b})`);

const SPECIAL: Record<ComputeDType, { nan: string; infinity: string }> = {
  f32: { nan: "__int_as_float(0x7fc00000)", infinity: "__int_as_float(0x7f800000)" },
  f64: { nan: "__longlong_as_double(0x7ff8000000000000ll)", infinity: "__longlong_as_double(0x7ff0000000000000ll)" },
};

export const TYPE: Record<ComputeDType, string> = { f32: "float", f64: "double" };

export const cuda: Dialect = {
  name: "cuda",
  constant(value, dtype) {
    const number = dtype === "f32" ? Math.fround(value) : value;
    if (Number.isNaN(number)) return SPECIAL[dtype].nan;
    if (!Number.isFinite(number)) return number > 0 ? SPECIAL[dtype].infinity : `(-${SPECIAL[dtype].infinity})`;
    const digits = Object.is(number, -0) ? "-0" : String(number);
    const text = `${/[.e]/.test(digits) ? digits : `${digits}.0`}${dtype === "f32" ? "f" : ""}`;
    return text.startsWith("-") ? `(${text})` : text;
  },
  declare: (name, value, dtype, kind) => `const ${kind === "condition" ? "bool" : TYPE[dtype]} ${name} = ${value};`,
  ops: {
    add: rounded("__fadd_rn", "__dadd_rn"),
    sub: rounded("__fsub_rn", "__dsub_rn"),
    mul: rounded("__fmul_rn", "__dmul_rn"),
    div: rounded("__fdiv_rn", "__ddiv_rn"),
    neg: both((a) => `(-${a})`),
    abs: unary("opt_abs"),
    sqrt: { f32: (a) => `__fsqrt_rn(${a})`, f64: (a) => `__dsqrt_rn(${a})` },
    fma: { f32: (a, b, c) => `__fmaf_rn(${a}, ${b}, ${c})`, f64: (a, b, c) => `__fma_rn(${a}, ${b}, ${c})` },
    max: binary("opt_max"),
    min: binary("opt_min"),
    less: both((a, b) => `(${a} < ${b})`),
    select: both((a, b, c) => `(${a} ? ${b} : ${c})`),
    exp: unary("opt_exp"),
    log: unary("opt_log"),
    tanh: unary("opt_tanh"),
    erf: unary("opt_erf"),
    sin: unary("opt_sin"),
    cos: unary("opt_cos"),
    pow: binary("opt_pow"),
    log1p: unary("opt_log1p"),
    expm1: unary("opt_expm1"),
    flipsign: binary("opt_flipsign"),
    power2: unary("opt_power2"),
    exponent: unary("opt_exponent"),
    significand: unary("opt_significand"),
  } satisfies Record<Op | BitOp, Record<ComputeDType, OpText>>,
};
