/** The JavaScript dialect: float32 by rounding every operation with Math.fround. */

import type { BitOp, Op } from "../rule/expression";
import type { FunctionDefinition } from "../rule/functions";
import type { Program } from "../rule/program";
import { type StoredFormats, withMirror } from "../rule/stored";
import type { ComputeDType } from "../values/dtype";
import { block } from "./blocks";
import type { Dialect, OpText } from "./dialect";
import { writeStatements } from "./statements";

/** An op whose float32 form is its float64 form, rounded. */
function rounded(write: OpText): Record<ComputeDType, OpText> {
  return { f64: write, f32: (a, b, c) => `fround(${write(a, b, c)})` };
}

/** An op that is the same in both, because it rounds nothing. */
function same(write: OpText): Record<ComputeDType, OpText> {
  return { f64: write, f32: write };
}

/** A function whose float32 form has a definition of its own; its name ends in 32. */
function ofFloat(name: string): Record<ComputeDType, OpText> {
  const operands = (a: string, b: string) => (name === "pow" ? `${a}, ${b}` : a);
  return { f64: (a, b) => `${name}(${operands(a, b)})`, f32: (a, b) => `fround(${name}32(${operands(a, b)}))` };
}

/** How expressions are written in JavaScript. */
export const javascript: Dialect = {
  name: "js",
  constant(value, dtype) {
    const number = dtype === "f32" ? Math.fround(value) : value;
    return Object.is(number, -0) ? "(-0)" : number < 0 ? `(${number})` : String(number);
  },
  declare: (name, value) => `const ${name} = ${value};`,
  ops: {
    add: rounded((a, b) => `(${a} + ${b})`),
    sub: rounded((a, b) => `(${a} - ${b})`),
    mul: rounded((a, b) => `(${a} * ${b})`),
    div: rounded((a, b) => `(${a} / ${b})`),
    neg: same((a) => `(-${a})`),
    abs: same((a) => `abs(${a})`),
    sqrt: rounded((a) => `sqrt(${a})`),
    fma: { f32: (a, b, c) => `fma32(${a}, ${b}, ${c})`, f64: (a, b, c) => `fma64(${a}, ${b}, ${c})` },
    max: same((a, b) => `max(${a}, ${b})`),
    min: same((a, b) => `min(${a}, ${b})`),
    less: same((a, b) => `(${a} < ${b})`),
    select: same((a, b, c) => `(${a} ? ${b} : ${c})`),
    exp: ofFloat("exp"),
    log: ofFloat("log"),
    tanh: ofFloat("tanh"),
    erf: ofFloat("erf"),
    sin: ofFloat("sin"),
    cos: ofFloat("cos"),
    pow: ofFloat("pow"),
    log1p: ofFloat("log1p"),
    expm1: ofFloat("expm1"),
    flipsign: same((a, b) => `flipsign(${a}, ${b})`),
    power2: same((a) => `power2(${a})`),
    exponent: same((a) => `exponent(${a})`),
    significand: same((a) => `significand(${a})`),
  } satisfies Record<Op | BitOp, Record<ComputeDType, OpText>>,
};

/** A function of `x` (and `y`), as its body. */
export function writeFunction(name: string, { program, dtype, reach }: FunctionDefinition): string {
  const { uniform, element } = writeStatements(program, javascript, dtype, {
    scalar: () => "",
    load: (_slot, operand) => operand,
    store: (_slot, _name, value) => `return ${value};`,
  });
  const beyond = reach === undefined ? [] : [`if (abs(x) > ${reach}) return ${name}(x);`];
  return [...beyond, ...uniform, ...element].join("\n");
}

/** A rule over elements start to end of arrays `<buffer>Array`, as the body of a function. */
export function writeRuleLoop(program: Program, dtype: ComputeDType, stored?: StoredFormats): string {
  const converted = (to: "from" | "to", slot: number, text: string) =>
    (stored?.[slot] ?? "f32") === "f32" ? text : `${to}_${stored![slot]}(${text})`;
  const { uniform, element } = writeStatements(withMirror(program, stored), javascript, dtype, {
    scalar: (slot) => (dtype === "f32" ? `fround(scalars[${slot}])` : `scalars[${slot}]`),
    load: (slot, name) => converted("from", slot, `${name}Array[i]`),
    store: (slot, name, value) => `${name}Array[i] = ${converted("to", slot, value)};`,
  });
  return [...uniform, ...block("for (let i = start; i < end; i++)", element)].join("\n");
}

/** A map along one row: input k reads from `base<k>` on in steps of `step<k>`; the output is dense from `start` on. */
export function writeMapLoop(program: Program, dtype: ComputeDType): string {
  const { uniform, element } = writeStatements(program, javascript, dtype, {
    scalar: (slot) => (dtype === "f32" ? `fround(scalars[${slot}])` : `scalars[${slot}]`),
    load: (slot) => `array${slot}[base${slot} + i * step${slot}]`,
    store: (_slot, _name, value) => `out[start + i] = ${value};`,
  });
  return [...uniform, ...block("for (let i = 0; i < length; i++)", element)].join("\n");
}
