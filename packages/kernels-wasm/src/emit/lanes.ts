/** What differs between vectors of four f32 and of two f64. */
import type { ComputeDType } from "@opt/core/backend";
import { f32, f32x4, f64x2, type Operand, type Value, v128 } from "../assembler";

export const LANES = {
  f32: {
    count: 4,
    bytes: 4,
    shape: f32x4,
    constant: (value: number) => f32x4.const(new Array<number>(4).fill(value)),
    splat: (value: Value<"f64">) => f32x4.splat(f32.demoteF64(value)),
    loadSplat: v128.load32Splat,
    /** The lowest lane alone, zeros above. */
    loadOne: v128.load32Zero,
    storeOne: (address: Operand<"i32">, vector: Value<"v128">) => v128.store32Lane(address, vector, 0),
    loadLane: v128.load32Lane,
  },
  f64: {
    count: 2,
    bytes: 8,
    shape: f64x2,
    constant: (value: number) => f64x2.const([value, value]),
    splat: (value: Value<"f64">) => f64x2.splat(value),
    loadSplat: v128.load64Splat,
    loadOne: v128.load64Zero,
    storeOne: (address: Operand<"i32">, vector: Value<"v128">) => v128.store64Lane(address, vector, 0),
    loadLane: v128.load64Lane,
  },
} as const satisfies Record<ComputeDType, unknown>;
