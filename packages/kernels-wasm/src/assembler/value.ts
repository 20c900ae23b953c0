/** Typed code: instructions that leave one value on the stack, or none. */
import { type Code, float32Bytes, float64Bytes, signed, unsigned } from "./encoding";

export type ValueType = "i32" | "i64" | "f32" | "f64" | "v128";

export const TYPE_BYTE: Readonly<Record<ValueType, number>> = {
  i32: 0x7f,
  i64: 0x7e,
  f32: 0x7d,
  f64: 0x7c,
  v128: 0x7b,
};

/** Code that pushes one value. Using it twice computes it twice: keep it in a local. */
export interface Value<T extends ValueType = ValueType> {
  readonly type: T;
  readonly code: Code;
}

/** Code that pushes nothing, for `FunctionBuilder.do`. */
export interface Effect {
  readonly type: "none";
  readonly code: Code;
}

/** A local variable; as a value it is read. */
export interface Local<T extends ValueType = ValueType> extends Value<T> {
  readonly index: number;
}

/** Plain numbers stand for constants. */
export type Operand<T extends ValueType> = T extends "v128" ? Value<T> : Value<T> | number;

export function local<T extends ValueType>(type: T, index: number): Local<T> {
  return { type, index, code: [0x20, ...unsigned(index)] };
}

const CONSTANT: Readonly<Record<Exclude<ValueType, "v128">, (number: number) => Code>> = {
  i32: (number) => [0x41, ...signed(BigInt(number | 0))],
  i64: (number) => [0x42, ...signed(BigInt.asIntN(64, BigInt(number)))],
  f32: (number) => [0x43, ...float32Bytes(number)],
  f64: (number) => [0x44, ...float64Bytes(number)],
};

/** The code of an operand, made a constant if it is a number. An i32 may be given signed or unsigned. */
export function push(type: ValueType, operand: Value | number): Code {
  return typeof operand === "number" ? CONSTANT[type as "i32"](operand) : operand.code;
}

type Operands<P extends readonly ValueType[]> = { [I in keyof P]: Operand<P[I]> };

/** An instruction that pops `parameters` and pushes `result`. */
export function instruction<const P extends readonly ValueType[], R extends ValueType>(
  opcode: Code,
  parameters: P,
  result: R,
): (...operands: Operands<P>) => Value<R> {
  return (...operands) => ({
    type: result,
    code: [...parameters.flatMap((type, i) => push(type, operands[i] as Value | number)), ...opcode],
  });
}

/** Load instruction. `offset` is in bytes, a constant beside the address. */
export function load<R extends ValueType>(opcode: Code, result: R) {
  return (address: Operand<"i32">, offset = 0): Value<R> => ({
    type: result,
    code: [...push("i32", address), ...opcode, 0, ...unsigned(offset)],
  });
}

/** Store instruction. */
export function store<V extends ValueType>(opcode: Code, type: V) {
  return (address: Operand<"i32">, value: Operand<V>, offset = 0): Effect => ({
    type: "none",
    code: [...push("i32", address), ...push(type, value), ...opcode, 0, ...unsigned(offset)],
  });
}
