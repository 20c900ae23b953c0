/** Instructions on i32, i64, f32 and f64, with their opcodes. Names are the specification's, in camelCase. */
import { type Effect, instruction, load, type Operand, push, store, type Value, type ValueType } from "./value";

const constant =
  <T extends "i32" | "i64" | "f32" | "f64">(type: T) =>
  (value: number): Value<T> => ({ type, code: push(type, value) });

const unary = <T extends ValueType>(type: T, opcode: number) => instruction([opcode], [type], type);
const binary = <T extends ValueType>(type: T, opcode: number) => instruction([opcode], [type, type], type);
const compare = <T extends ValueType>(type: T, opcode: number) => instruction([opcode], [type, type], "i32");
const convert = <P extends ValueType, R extends ValueType>(from: P, to: R, ...opcode: number[]) =>
  instruction(opcode, [from], to);

export const i32 = {
  const: constant("i32"),
  load: load([0x28], "i32"),
  load8U: load([0x2d], "i32"),
  load16U: load([0x2f], "i32"),
  store: store([0x36], "i32"),
  store8: store([0x3a], "i32"),
  store16: store([0x3b], "i32"),
  eqz: convert("i32", "i32", 0x45),
  eq: compare("i32", 0x46),
  ne: compare("i32", 0x47),
  ltS: compare("i32", 0x48),
  ltU: compare("i32", 0x49),
  gtS: compare("i32", 0x4a),
  gtU: compare("i32", 0x4b),
  leU: compare("i32", 0x4d),
  geU: compare("i32", 0x4f),
  add: binary("i32", 0x6a),
  sub: binary("i32", 0x6b),
  mul: binary("i32", 0x6c),
  divU: binary("i32", 0x6e),
  remU: binary("i32", 0x70),
  and: binary("i32", 0x71),
  or: binary("i32", 0x72),
  shl: binary("i32", 0x74),
  shrS: binary("i32", 0x75),
  shrU: binary("i32", 0x76),
  wrapI64: convert("i64", "i32", 0xa7),
  truncSatF32S: convert("f32", "i32", 0xfc, 0),
  truncSatF64S: convert("f64", "i32", 0xfc, 2),
  reinterpretF32: convert("f32", "i32", 0xbc),
};

export const f32 = {
  const: constant("f32"),
  load: load([0x2a], "f32"),
  store: store([0x38], "f32"),
  eq: compare("f32", 0x5b),
  ne: compare("f32", 0x5c),
  gt: compare("f32", 0x5e),
  add: binary("f32", 0x92),
  mul: binary("f32", 0x94),
  max: binary("f32", 0x97),
  convertI32S: convert("i32", "f32", 0xb2),
  demoteF64: convert("f64", "f32", 0xb6),
  reinterpretI32: convert("i32", "f32", 0xbe),
};

export const f64 = {
  const: constant("f64"),
  load: load([0x2b], "f64"),
  store: store([0x39], "f64"),
  eq: compare("f64", 0x61),
  ne: compare("f64", 0x62),
  lt: compare("f64", 0x63),
  gt: compare("f64", 0x64),
  ge: compare("f64", 0x66),
  abs: unary("f64", 0x99),
  add: binary("f64", 0xa0),
  sub: binary("f64", 0xa1),
  mul: binary("f64", 0xa2),
  div: binary("f64", 0xa3),
  max: binary("f64", 0xa5),
  convertI32S: convert("i32", "f64", 0xb7),
  convertI32U: convert("i32", "f64", 0xb8),
  promoteF32: convert("f32", "f64", 0xbb),
  reinterpretI64: convert("i64", "f64", 0xbf),
};

export const memory = {
  /** Copies `bytes` from `source` to `target`; they may overlap. */
  copy: (target: Operand<"i32">, source: Operand<"i32">, bytes: Operand<"i32">): Effect => ({
    type: "none",
    code: [...[target, source, bytes].flatMap((operand) => push("i32", operand)), 0xfc, 10, 0, 0],
  }),
  /** Sets `bytes` bytes from `target` on to `byte`. */
  fill: (target: Operand<"i32">, byte: Operand<"i32">, bytes: Operand<"i32">): Effect => ({
    type: "none",
    code: [...[target, byte, bytes].flatMap((operand) => push("i32", operand)), 0xfc, 11, 0],
  }),
};

/** `condition` not 0: a, else b. Both are computed. */
export function select<T extends ValueType>(condition: Operand<"i32">, a: Value<T>, b: Value<T>): Value<T> {
  const code = [...a.code, ...b.code, ...push("i32", condition)];
  return { type: a.type, code: a.type === "v128" ? [...code, 0x1c, 1, 0x7b] : [...code, 0x1b] };
}
