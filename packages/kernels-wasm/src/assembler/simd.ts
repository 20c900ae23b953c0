/** Instructions on v128, with their opcodes: fixed-width SIMD, and of relaxed SIMD the multiply-adds. */
import { unsigned } from "./encoding";
import { type Effect, instruction, load, type Operand, push, store, type Value } from "./value";

const opcode = (index: number) => [0xfd, ...unsigned(index)];
const unary = (index: number) => instruction(opcode(index), ["v128"], "v128");
const binary = (index: number) => instruction(opcode(index), ["v128", "v128"], "v128");
const ternary = (index: number) => instruction(opcode(index), ["v128", "v128", "v128"], "v128");
const shift = (index: number) => instruction(opcode(index), ["v128", "i32"], "v128");
const test = (index: number) => instruction(opcode(index), ["v128"], "i32");

/** Lane 0 is the lowest address. */
const extract =
  <R extends "i32" | "i64" | "f32" | "f64">(index: number, type: R) =>
  (vector: Value<"v128">, lane: number): Value<R> => ({ type, code: [...vector.code, ...opcode(index), lane] });

const replace =
  <T extends "i32" | "i64" | "f32" | "f64">(index: number, type: T) =>
  (vector: Value<"v128">, lane: number, value: Operand<T>): Value<"v128"> => ({
    type: "v128",
    code: [...vector.code, ...push(type, value), ...opcode(index), lane],
  });

const loadLane =
  (index: number) =>
  (address: Operand<"i32">, vector: Value<"v128">, lane: number, offset = 0): Value<"v128"> => ({
    type: "v128",
    code: [...push("i32", address), ...vector.code, ...opcode(index), 0, ...unsigned(offset), lane],
  });

const storeLane =
  (index: number) =>
  (address: Operand<"i32">, vector: Value<"v128">, lane: number, offset = 0): Effect => ({
    type: "none",
    code: [...push("i32", address), ...vector.code, ...opcode(index), 0, ...unsigned(offset), lane],
  });

const constant = (bytes: ArrayBuffer): Value<"v128"> => ({
  type: "v128",
  code: [...opcode(12), ...new Uint8Array(bytes)],
});

export const v128 = {
  load: load(opcode(0), "v128"),
  /** One f32 or i32 (f64 or i64) in all lanes. */
  load32Splat: load(opcode(9), "v128"),
  load64Splat: load(opcode(10), "v128"),
  /** One f32 (two f32) in the lowest lanes, zeros above. */
  load32Zero: load(opcode(92), "v128"),
  load64Zero: load(opcode(93), "v128"),
  load32Lane: loadLane(86),
  load64Lane: loadLane(87),
  store: store(opcode(11), "v128"),
  store32Lane: storeLane(90),
  store64Lane: storeLane(91),
  and: binary(78),
  or: binary(80),
  xor: binary(81),
  /** (a, b, mask): bits of a where the mask has ones, else of b. */
  bitselect: ternary(82),
  anyTrue: test(83),
};

export const i8x16 = {
  /** Byte i of the result is byte `lanes[i]` of a and b laid end to end. */
  shuffle: (a: Value<"v128">, b: Value<"v128">, lanes: readonly number[]): Value<"v128"> => ({
    type: "v128",
    code: [...a.code, ...b.code, ...opcode(13), ...lanes],
  }),
};

export const i16x8 = {
  /** Two vectors of i32, saturated to unsigned 16 bits, end to end. */
  narrowI32x4U: binary(134),
};

/** Lane i of the result is lane `lanes[i]` of a and b laid end to end, for four lanes of 32 bits. */
export function shuffle32(a: Value<"v128">, b: Value<"v128">, lanes: readonly number[]): Value<"v128"> {
  return i8x16.shuffle(
    a,
    b,
    lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)),
  );
}

export const i32x4 = {
  const: (lanes: readonly number[]) => constant(Int32Array.from(lanes).buffer),
  splat: instruction(opcode(17), ["i32"], "v128"),
  extractLane: extract(27, "i32"),
  eq: binary(55),
  ltS: binary(57),
  gtS: binary(59),
  /** The four lower lanes of 16 bits, zeros above each. */
  extendLowI16x8U: unary(169),
  shl: shift(171),
  shrS: shift(172),
  shrU: shift(173),
  add: binary(174),
  sub: binary(177),
  mul: binary(181),
};

/** To i32, towards zero; NaN gives 0. */
export const truncF32x4 = /* @__PURE__ */ unary(248);

export const i64x2 = {
  shl: shift(203),
  shrS: shift(204),
  shrU: shift(205),
  add: binary(206),
  eq: binary(214),
  bitmask: test(196),
};

export const f32x4 = {
  const: (lanes: readonly number[]) => constant(Float32Array.from(lanes).buffer),
  splat: instruction(opcode(19), ["f32"], "v128"),
  extractLane: extract(31, "f32"),
  ne: binary(66),
  lt: binary(67),
  gt: binary(68),
  ge: binary(70),
  /** Two doubles to the lower lanes, zeros above. */
  demoteF64x2Zero: unary(94),
  floor: unary(104),
  abs: unary(224),
  neg: unary(225),
  sqrt: unary(227),
  add: binary(228),
  sub: binary(229),
  mul: binary(230),
  div: binary(231),
  /** NaN if either operand is NaN. */
  min: binary(232),
  max: binary(233),
  /** b < a ? b : a. */
  pmin: binary(234),
  /** a < b ? b : a. */
  pmax: binary(235),
  /** a * b + c with one or two roundings, as the machine likes: only where `Features.relaxedSimd`. */
  relaxedMadd: ternary(0x105),
};

export const f64x2 = {
  const: (lanes: readonly number[]) => constant(Float64Array.from(lanes).buffer),
  splat: instruction(opcode(20), ["f64"], "v128"),
  extractLane: extract(33, "f64"),
  replaceLane: replace(34, "f64"),
  ne: binary(72),
  lt: binary(73),
  gt: binary(74),
  /** The two lower floats. */
  promoteLowF32x4: unary(95),
  abs: unary(236),
  neg: unary(237),
  sqrt: unary(239),
  add: binary(240),
  sub: binary(241),
  mul: binary(242),
  div: binary(243),
  max: binary(245),
  /** b < a ? b : a. */
  pmin: binary(246),
  /** a < b ? b : a. */
  pmax: binary(247),
  relaxedMadd: ternary(0x107),
};
