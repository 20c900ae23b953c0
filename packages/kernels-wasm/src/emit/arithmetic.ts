/** The ops of rules, and those that functions are made of, as vector code. */
import type { BitOp, ComputeDType, RuleOp } from "@opt/core/backend";
import { type FunctionBuilder, f32x4, f64x2, i32x4, i64x2, type ModuleBuilder, type Value, v128 } from "../assembler";
import type { Target } from "../kernel";
import { emitFma } from "./fma";
import { LANES } from "./lanes";

type Vector = Value<"v128">;
export type Operation = (...operands: Vector[]) => Vector;

/** Writes an op inside one function; made at its entry, where constants are kept. */
export type Write = (f: FunctionBuilder) => Operation;

const SIGN = { f32: [1 << 31, 1 << 31, 1 << 31, 1 << 31], f64: [0, 1 << 31, 0, 1 << 31] };

/** 2^n: adding this leaves the exponent's bits at the bottom. */
const power2 = {
  f32: (f: FunctionBuilder, n: Vector) =>
    i32x4.shl(f32x4.add(n, f.constant(LANES.f32.constant(1.5 * 2 ** 23 + 127))), 23),
  f64: (f: FunctionBuilder, n: Vector) =>
    i64x2.shl(f64x2.add(n, f.constant(LANES.f64.constant(1.5 * 2 ** 52 + 1023))), 52),
};

const upper = (f: FunctionBuilder, word: number) => f.constant(i32x4.const([0, word, 0, word]));

/** Upper words of 1, of sqrt(1/2), and of 2^52. */
const [ONE, SQRT_HALF, TWO_TO_52] = [0x3ff00000, 0x3fe6a09e, 0x43300000];
const fromSqrtHalf = (f: FunctionBuilder, x: Vector) => i64x2.add(x, upper(f, ONE - SQRT_HALF));

function exponent(f: FunctionBuilder, x: Vector): Vector {
  const biased = i64x2.shrU(fromSqrtHalf(f, x), 52);
  return f64x2.sub(v128.or(biased, upper(f, TWO_TO_52)), f.constant(LANES.f64.constant(2 ** 52 + 1023)));
}

function significand(f: FunctionBuilder, x: Vector): Vector {
  const fraction = v128.and(fromSqrtHalf(f, x), f.constant(i32x4.const([-1, 0xfffff, -1, 0xfffff])));
  return i64x2.add(fraction, upper(f, SQRT_HALF));
}

/** Adds the helper functions that the op needs. */
export function emitArithmetic(module: ModuleBuilder, op: RuleOp | BitOp, dtype: ComputeDType, target: Target): Write {
  const { shape } = LANES[dtype];
  const same = (operation: Operation) => () => operation;
  switch (op) {
    case "add":
    case "sub":
    case "mul":
    case "div":
      return same((a, b) => shape[op](a!, b!));
    case "neg":
    case "abs":
    case "sqrt":
      return same((a) => shape[op](a!));
    case "max":
      return same((a, b) => shape.pmax(a!, b!));
    case "min":
      return same((a, b) => shape.pmin(a!, b!));
    case "less":
      return same((a, b) => shape.lt(a!, b!));
    case "select":
      return same((condition, a, b) => v128.bitselect(a!, b!, condition!));
    case "fma":
      return emitFma(module, dtype, target) as Write;
    case "flipsign":
      return (f) => (a, b) => v128.xor(a!, v128.and(b!, f.constant(i32x4.const(SIGN[dtype]))));
    case "power2":
      return (f) => (n) => power2[dtype](f, n!);
    case "exponent":
      return (f) => (x) => exponent(f, x!);
    case "significand":
      return (f) => (x) => significand(f, x!);
  }
}
