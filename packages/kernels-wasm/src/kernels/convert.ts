/** One stored element of any dtype from memory to memory of any other. */
import type { DType } from "@opt/core/backend";
import { type FunctionBuilder, f32, f32x4, f64, i32, type Operand, select, type Value } from "../assembler";
import { accessTo } from "../emit/stored";

type I32 = Operand<"i32">;
type Number = Value<"i32"> | Value<"f32"> | Value<"f64">;

const PLAIN = {
  f32: [f32.load, f32.store, toF32],
  f64: [f64.load, f64.store, toF64],
  i32: [i32.load, i32.store, truncated],
  u8: [i32.load8U, i32.store8, toByte],
  bool: [i32.load8U, i32.store8, isNotZero],
} as const;
const BITS = [i32.load16U, i32.store16] as const;

export const is16Bit = (dtype: DType): dtype is "f16" | "bf16" => dtype === "f16" || dtype === "bf16";

/** Writes the conversion of the element at `source` to one at `target`. */
export function convertElement(f: FunctionBuilder, from: DType, to: DType, source: I32, target: I32): void {
  if (from === to) {
    const [load, store] = is16Bit(to) ? BITS : PLAIN[to];
    f.do(store(target, load(source) as never));
    return;
  }
  const x = loadNumber(f, from, source);
  if (is16Bit(to)) {
    const number = to === "f16" && x.type === "f64" ? toOdd(f, x as Value<"f64">) : toF32(x);
    f.do(accessTo(f, "f32", to).storeOne(target, f32x4.splat(number)));
    return;
  }
  const [, store, of] = PLAIN[to];
  f.do(store(target, of(x) as never));
}

/** The element's value, in a local. */
function loadNumber(f: FunctionBuilder, dtype: DType, address: I32): Number {
  const raw = is16Bit(dtype)
    ? f32x4.extractLane(accessTo(f, "f32", dtype).loadOne(address), 0)
    : PLAIN[dtype][0](address);
  return f.local(raw.type, raw as Value<"i32">) as Number;
}

/** In float32, rounded to odd: rounded once more to float16 it is as if it had been rounded straight. */
function toOdd(f: FunctionBuilder, x: Value<"f64">): Value<"f32"> {
  const near = f.local("f32", f32.demoteF64(x));
  const bits = f.local("i32", i32.reinterpretF32(near));
  const isTooFar = f64.lt(f64.abs(x), f64.abs(f64.promoteF32(near)));
  const odd = i32.add(bits, select(isTooFar, i32.const(-1), i32.const(1)));
  const isExactOrOdd = i32.or(f64.eq(f64.promoteF32(near), x), i32.and(bits, 1));
  return f32.reinterpretI32(select(isExactOrOdd, bits, odd));
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
