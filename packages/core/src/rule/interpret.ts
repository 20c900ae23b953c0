/** The definition of every op: what all devices must agree with. */

import { internalError } from "../errors/errors";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { erf } from "./erf";
import { type BitOp, isTranscendental, type Op, type OpName, type RuleOp } from "./expression";
import { fma32, fma64 } from "./fma";
import { type FunctionName, functionDefinition } from "./functions";
import { exponent, flipsign, power2, significand } from "./functions/bits";
import type { Node, Program } from "./program";

/** Conditions are 1 and 0. */
type Evaluate = (a: number, b: number, c: number) => number;

/** `a < b ? b : a`: other than Math.max for NaN and -0. */
function maximum(a: number, b: number): number {
  if (a < b) return b;
  return a;
}

/** `b < a ? b : a`. */
function minimum(a: number, b: number): number {
  if (b < a) return b;
  return a;
}

/** Functions of numbers, in float64. */
export const NUMBERS: Readonly<Record<OpName | "fround", Evaluate>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  neg: (a) => -a,
  abs: Math.abs,
  sqrt: Math.sqrt,
  fma: fma64,
  maximum,
  minimum,
  less: (a, b) => (a < b ? 1 : 0),
  where: (condition, a, b) => (condition !== 0 ? a : b),
  exp: Math.exp,
  log: Math.log,
  tanh: Math.tanh,
  erf,
  sin: Math.sin,
  cos: Math.cos,
  pow: power,
  log1p: Math.log1p,
  expm1: Math.expm1,
  fround: Math.fround,
};

/** In float64. float32 results of rule ops are these rounded once, which is exact IEEE float32 arithmetic for all but fma. */
export const ARITHMETIC: Readonly<Record<Op, Evaluate>> = {
  ...NUMBERS,
  ...{ max: maximum, min: minimum, select: NUMBERS.where },
};

/** C's pow, which differs from Math.pow in pow(1, NaN) = 1 and pow(-1, ±Infinity) = 1. */
function power(a: number, b: number): number {
  if (a === 1 || (a === -1 && Math.abs(b) === Number.POSITIVE_INFINITY)) return 1;
  return a ** b;
}

export const BITS: Readonly<Record<BitOp, Evaluate>> = { flipsign, power2, exponent, significand };

/** One op on numbers that are already of the dtype. */
export function evaluateOp(op: Op | BitOp, dtype: ComputeDType, a: number, b = 0, c = 0): number {
  if (op in BITS) return BITS[op as BitOp](a, b, c);
  if (dtype === "f64") return ARITHMETIC[op as Op](a, b, c);
  if (op === "fma") return fma32(a, b, c);
  return Math.fround(isTranscendental(op) ? evaluateFunction(op, a, b) : ARITHMETIC[op as RuleOp](a, b, c));
}

/** A function of float32: its value in float64, yet to be rounded, and of `weight` in float32. */
export function evaluateFunction(name: FunctionName, x: number, y = 0): number {
  const { program, dtype, reach = Number.POSITIVE_INFINITY } = functionDefinition(name);
  if (Math.abs(x) > reach) return ARITHMETIC[name as Op](x, y, 0);
  const values = new Float64Array(program.nodes.length);
  evaluateNodes(program.nodes, dtype, values, (_op, slot) => (slot === 0 ? x : y));
  return values[program.outputs[0]!.node]!;
}

/** Sets the values of nodes: of the uniform ones, of the others, or of all. */
function evaluateNodes(
  nodes: readonly Node[],
  dtype: ComputeDType,
  values: Float64Array,
  input: (op: "buffer" | "scalar", slot: number) => number,
  uniform?: boolean,
): void {
  for (let n = 0; n < nodes.length; n++) {
    const { op, args, value, uniform: isUniform } = nodes[n]!;
    if (uniform !== undefined && isUniform !== uniform) continue;
    if (op === "buffer" || op === "scalar") values[n] = input(op, value);
    else if (op === "constant") values[n] = dtype === "f32" ? Math.fround(value) : value;
    else values[n] = evaluateOp(op, dtype, values[args[0]!]!, values[args[1] ?? 0]!, values[args[2] ?? 0]!);
  }
}

/**
 * Runs a program on elements `start` to `end`: element i reads `buffers[slot][i]`, or `buffers[slot][index(slot, i)]` where given,
 * and its results go to `store(slot, i, value)`.
 */
export function interpret(
  program: Program,
  dtype: ComputeDType,
  buffers: readonly TypedArray[],
  scalars: readonly number[],
  store: (slot: number, i: number, value: number) => void,
  start: number,
  end: number,
  index: (slot: number, i: number) => number = (_slot, i) => i,
): void {
  const round = dtype === "f32" ? Math.fround : (x: number) => x;
  const { nodes, outputs } = program;
  const values = new Float64Array(nodes.length);
  if (buffers.length !== program.buffers.length || scalars.length !== program.scalars.length) {
    throw internalError(
      "interpret",
      `program takes ${program.buffers.length} buffers and ${program.scalars.length} scalars`,
    );
  }
  let i = start;
  const input = (op: "buffer" | "scalar", slot: number) =>
    op === "buffer" ? buffers[slot]![index(slot, i)]! : round(scalars[slot]!);
  evaluateNodes(nodes, dtype, values, input, true);
  for (; i < end; i++) {
    evaluateNodes(nodes, dtype, values, input, false);
    for (const { slot, node } of outputs) store(slot, i, values[node]!);
  }
}
