/** One stored element of any dtype from memory to memory of any other. */
import type { DType } from "@opt/core/backend";
import { type Effect, type FunctionBuilder, f32, f64, i32, i64, type Operand, select, type Value } from "../assembler";

type I32 = Operand<"i32">;
type Number = Value<"i32"> | Value<"f32"> | Value<"f64">;

/** An element as stored: how it is loaded and stored, and what is stored for a number. */
type Stored = readonly [
  load: (address: I32) => Number,
  store: (address: I32, value: never) => Effect,
  of: (x: Number, f: FunctionBuilder) => Number,
];

const STORED: Readonly<Record<DType, Stored>> = {
  f32: [f32.load, f32.store, toF32],
  f64: [f64.load, f64.store, toF64],
  i32: [i32.load, i32.store, truncated],
  u8: [i32.load8U, i32.store8, toByte],
  bool: [i32.load8U, i32.store8, isNotZero],
  f16: [i32.load16U, i32.store16, toF16],
  bf16: [i32.load16U, i32.store16, toBf16],
};

/** Writes the conversion of the element at `source` to one at `target`. */
export function convertElement(f: FunctionBuilder, from: DType, to: DType, source: I32, target: I32): void {
  const [load, store, of] = STORED[to];
  f.do(store(target, (from === to ? load(source) : of(loadNumber(f, from, source), f)) as never));
}

/** The element's value, in a local. */
function loadNumber(f: FunctionBuilder, dtype: DType, address: I32): Number {
  if (dtype === "f16" || dtype === "bf16") return f.local("f32", fromHalf(f, dtype, address));
  const raw = STORED[dtype][0](address);
  return f.local(raw.type, raw as Value<"i32">) as Number;
}

function fromHalf(f: FunctionBuilder, dtype: "f16" | "bf16", address: I32): Value<"f32"> {
  const bits = f.local("i32", i32.load16U(address));
  if (dtype === "bf16") return f32.reinterpretI32(i32.shl(bits, 16));
  // Moved to float32's place the exponent is 112 too small; the product is exact, of subnormals too.
  const magnitude = f.local("i32", i32.shl(i32.and(bits, 0x7fff), 13));
  const finite = f32.mul(f32.reinterpretI32(magnitude), 2 ** 112);
  const special = f32.reinterpretI32(i32.or(magnitude, 0x7f800000));
  const value = f.local("f32", select(i32.geU(magnitude, 0x7c00 << 13), special, finite));
  return f32.reinterpretI32(i32.or(i32.reinterpretF32(value), i32.shl(i32.and(bits, 0x8000), 16)));
}

function toF32(x: Number): Value<"f32"> {
  if (x.type === "f32") return x as Value<"f32">;
  return x.type === "f64" ? f32.demoteF64(x as Value<"f64">) : f32.convertI32S(x as Value<"i32">);
}

function toF64(x: Number): Value<"f64"> {
  if (x.type === "f64") return x as Value<"f64">;
  return x.type === "f32" ? f64.promoteF32(x as Value<"f32">) : f64.convertI32S(x as Value<"i32">);
}

/** Towards zero, saturating; NaN gives 0. */
function truncated(x: Number): Value<"i32"> {
  if (x.type === "i32") return x as Value<"i32">;
  return x.type === "f32" ? i32.truncSatF32S(x as Value<"f32">) : i32.truncSatF64S(x as Value<"f64">);
}

function toByte(x: Number): Value<"i32"> {
  const whole = truncated(x);
  const notNegative = select(i32.gtS(whole, 0), whole, i32.const(0));
  return select(i32.gtS(whole, 255), i32.const(255), notNegative);
}

function isNotZero(x: Number): Value<"i32"> {
  if (x.type === "i32") return i32.ne(x as Value<"i32">, 0);
  return x.type === "f32" ? f32.ne(x as Value<"f32">, 0) : f64.ne(x as Value<"f64">, 0);
}

/** The upper half of float32, to nearest even; a NaN stays one. */
function toBf16(number: Number, f: FunctionBuilder): Value<"i32"> {
  const x = f.local("f32", toF32(number));
  const bits = f.local("i32", i32.reinterpretF32(x));
  const upper = i32.shrU(bits, 16);
  const rounded = i32.shrU(i32.add(bits, i32.add(i32.and(upper, 1), 0x7fff)), 16);
  return select(f32.eq(x, x), rounded, i32.or(upper, 0x40));
}

/** To nearest even straight from float64, by adding and subtracting 2^52 units of the last place that float16 keeps. */
function toF16(number: Number, f: FunctionBuilder): Value<"i32"> {
  const x = f.local("f64", toF64(number));
  const magnitude = f.local("f64", f64.abs(x));
  const sign = i32.and(i32.wrapI64(i64.shrU(i64.reinterpretF64(x), 48)), 0x8000);
  const exponent = f.local("i32", i32.wrapI64(i64.shrU(i64.reinterpretF64(magnitude), 52)));
  const smallest = 1023 - 14;
  f.if(i32.ltU(exponent, smallest), () => f.set(exponent, smallest));
  const unit = f64.reinterpretI64(i64.shl(i64.extendI32U(i32.add(exponent, 52 - 10)), 52));
  const anchor = f.local("f64", unit);
  const rounded = f.local("f64", f64.sub(f64.add(magnitude, anchor), anchor));
  const normal = i64.shrU(i64.sub(i64.reinterpretF64(rounded), (1023 - 15) * 2 ** 52), 52 - 10);
  const half = f.local("i32", i32.wrapI64(normal));
  f.if(f64.lt(rounded, 2 ** -14), () => f.set(half, i32.truncSatF64S(f64.mul(rounded, 2 ** 24))));
  f.if(f64.ge(magnitude, 65_520), () => f.set(half, 0x7c00));
  return select(f64.eq(x, x), i32.or(sign, half), i32.const(0x7e00));
}
