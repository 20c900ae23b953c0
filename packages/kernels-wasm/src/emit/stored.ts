/** How vectors, and single elements, come from memory and go there in each stored format. */
import type { ComputeDType, StoredDType, StoredFormats } from "@opt/core/backend";
import {
  type Effect,
  type FunctionBuilder,
  f32x4,
  i16x8,
  i32,
  i32x4,
  type Local,
  type Operand,
  type Value,
  v128,
} from "../assembler";

import { LANES } from "./lanes";

type Vector = Value<"v128">;
type Address = Operand<"i32">;

export interface Access {
  /** Of an element. */
  readonly bytes: number;
  load(address: Address, offset: number): Vector;
  loadOne(address: Address): Vector;
  store(address: Address, value: Vector, offset: number): Effect;
  storeOne(address: Address, value: Vector): Effect;
}

/** In the function of a rule: further formats need its pointers, which move as it does, and its scalars. */
export type AccessOf = (
  f: FunctionBuilder,
  pointers: readonly Local<"i32">[],
  scalars: readonly Local<"f64">[],
) => Access;

/** Formats that `enableStochasticRounding` brings. */
export const brought: Record<string, AccessOf> = {};

/** `accessTo` in the function of a rule. */
export function accessIn(
  f: FunctionBuilder,
  dtype: ComputeDType,
  format: StoredFormats[number] = "f32",
  ...rule: [pointers: readonly Local<"i32">[], scalars: readonly Local<"f64">[]]
): Access {
  return brought[format]?.(f, ...rule) ?? accessTo(f, dtype, format as StoredDType);
}

/** Access inside one function to what is computed in the dtype, and stored in it or in 16 bits. */
export function accessTo(f: FunctionBuilder, dtype: ComputeDType, format: StoredDType = "f32"): Access {
  if (format === "f32") {
    const { bytes, loadOne, storeOne } = LANES[dtype];
    return { bytes, load: v128.load, loadOne, store: v128.store, storeOne };
  }
  const widen = (bits: Vector) => (format === "bf16" ? i32x4.shl(bits, 16) : fromHalf(f, bits));
  const narrow = (value: Vector) => (format === "bf16" ? toBf16(f, value) : toHalf(f, value));
  return {
    bytes: 2,
    load: (address, offset) => widen(i32x4.extendLowI16x8U(v128.load64Zero(address, offset))),
    loadOne: (address) => widen(i32x4.splat(i32.load16U(address))),
    store(address, value, offset) {
      const bits = narrow(value);
      return v128.store64Lane(address, i16x8.narrowI32x4U(bits, bits), 0, offset);
    },
    storeOne: (address, value) => i32.store16(address, i32x4.extractLane(narrow(value), 0)),
  };
}

const all = (f: FunctionBuilder, word: number) => f.constant(i32x4.const([word, word, word, word]));

/** Moved to float32's place the exponent is 112 too small; the product is exact, of subnormals too. */
function fromHalf(f: FunctionBuilder, stored: Vector): Vector {
  const bits = f.local("v128", stored);
  const magnitude = f.local("v128", i32x4.shl(v128.and(bits, all(f, 0x7fff)), 13));
  const finite = f32x4.mul(magnitude, f.constant(f32x4.const(new Array<number>(4).fill(2 ** 112))));
  const special = v128.or(magnitude, all(f, 0x7f800000));
  const value = v128.bitselect(special, finite, i32x4.gtS(magnitude, all(f, 0x7bff << 13)));
  return v128.or(value, i32x4.shl(v128.and(bits, all(f, 0x8000)), 16));
}

/** The upper half, to nearest even; a NaN stays one. */
function toBf16(f: FunctionBuilder, value: Vector): Vector {
  const bits = f.local("v128", value);
  const upper = f.local("v128", i32x4.shrU(bits, 16));
  const half = i32x4.add(v128.and(upper, all(f, 1)), all(f, 0x7fff));
  const rounded = i32x4.shrU(i32x4.add(bits, half), 16);
  return f.local("v128", v128.bitselect(v128.or(upper, all(f, 0x40)), rounded, f32x4.ne(bits, bits)));
}

/** To nearest even: normals by a carry, subnormals by the sum with 0.5, whose last place is theirs. */
function toHalf(f: FunctionBuilder, value: Vector): Vector {
  const bits = f.local("v128", value);
  const magnitude = f.local("v128", v128.and(bits, all(f, 0x7fffffff)));
  const odd = v128.and(i32x4.shrU(magnitude, 13), all(f, 1));
  const rebased = i32x4.add(i32x4.add(magnitude, odd), all(f, 0xfff - (112 << 23)));
  const half = f.constant(f32x4.const([0.5, 0.5, 0.5, 0.5]));
  const subnormal = i32x4.sub(f32x4.add(magnitude, half), half);
  const isNormal = i32x4.gtS(magnitude, all(f, 0x387fffff));
  const finite = v128.bitselect(i32x4.shrU(rebased, 13), subnormal, isNormal);
  const staysFinite = i32x4.gtS(all(f, 0x477ff000), magnitude); // below 65520
  const sign = i32x4.shl(i32x4.shrU(bits, 31), 15);
  const number = v128.or(v128.bitselect(finite, all(f, 0x7c00), staysFinite), sign);
  return f.local("v128", v128.bitselect(all(f, 0x7e00), number, f32x4.ne(bits, bits)));
}
