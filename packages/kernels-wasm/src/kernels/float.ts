/** What kernels written once for f32 and f64 need to know of either. */
import type { ComputeDType, MapDType } from "@opt/core/backend";
import {
  type Effect,
  type FunctionBuilder,
  f32,
  f32x4,
  f64,
  f64x2,
  i32x4,
  type Local,
  type Operand,
  shuffle32,
  type Value,
} from "../assembler";
import { LANES } from "../emit/lanes";
import type { Target } from "../kernel";

type Vector = Value<"v128">;
type Scalar = Value<ComputeDType>;

/** Loosely typed on purpose: a `Scalar` is of the one type whose `Float` made it. */
export interface Float {
  readonly type: ComputeDType;
  /** Bytes of an element, and its power of two. */
  readonly bytes: number;
  readonly shift: number;
  /** Elements of a vector. */
  readonly lanes: number;
  readonly scalar: {
    const(value: number): Scalar;
    load(address: Operand<"i32">, offset?: number): Scalar;
    store(address: Operand<"i32">, value: Scalar, offset?: number): Effect;
  } & Readonly<Record<"add" | "max", (a: Scalar, b: Scalar) => Scalar>> &
    Readonly<Record<"gt" | "eq" | "ne", (a: Scalar, b: Scalar) => Value<"i32">>>;
  readonly vector: {
    splat(value: Scalar): Vector;
    extractLane(vector: Vector, lane: number): Scalar;
    loadSplat(address: Operand<"i32">, offset?: number): Vector;
  } & Readonly<Record<"add" | "sub" | "mul" | "max" | "pmax" | "gt" | "ne", (a: Vector, b: Vector) => Vector>>;
  /** One element in the lowest lane, zeros above. */
  loadOne(address: Operand<"i32">): Vector;
  /** The lane at the lowest address. */
  readonly lowest: {
    store(address: Operand<"i32">, vector: Vector): Effect;
    /** Ones in it, zeros elsewhere. */
    readonly mask: Vector;
  };
}

const F32: Float = {
  type: "f32",
  bytes: 4,
  shift: 2,
  lanes: 4,
  scalar: f32 as unknown as Float["scalar"],
  vector: { ...f32x4, loadSplat: LANES.f32.loadSplat } as unknown as Float["vector"],
  loadOne: LANES.f32.loadOne,
  lowest: {
    store: LANES.f32.storeOne,
    mask: i32x4.const([-1, 0, 0, 0]),
  },
};

const F64: Float = {
  type: "f64",
  bytes: 8,
  shift: 3,
  lanes: 2,
  scalar: f64 as unknown as Float["scalar"],
  vector: { ...f64x2, loadSplat: LANES.f64.loadSplat } as unknown as Float["vector"],
  loadOne: LANES.f64.loadOne,
  lowest: {
    store: LANES.f64.storeOne,
    mask: i32x4.const([-1, -1, 0, 0]),
  },
};

/** `dtype` is one that the backend lists: core asks for no other. */
export function floatOf(dtype: MapDType): Float {
  return dtype === "f32" ? F32 : F64;
}

/** The two (one, of f64) pairs of a vector in float64. */
export function pairsOf({ type }: Float, x: Local<"v128">): Vector[] {
  return type === "f32" ? [x, shuffle32(x, x, [2, 3, 2, 3])].map(f64x2.promoteLowF32x4) : [x];
}

/** A vector of what pairs of float64 round to; zeros where there is one pair for two. */
export function vectorOf({ type }: Float, [low, high]: readonly Vector[]): Vector {
  if (type === "f64") return low!;
  const half = f32x4.demoteF64x2Zero(low!);
  return high ? shuffle32(half, f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]) : half;
}

export function widen({ type }: Float, value: Scalar): Value<"f64"> {
  return type === "f32" ? f64.promoteF32(value as Value<"f32">) : (value as Value<"f64">);
}

export function narrow({ type }: Float, value: Value<"f64">): Scalar {
  return type === "f32" ? f32.demoteF64(value) : value;
}

/** a * b + c, fused where the machine can: for sums that promise no particular rounding. */
export function multiplyAdd(float: Float, target: Target): (a: Vector, b: Vector, c: Vector) => Vector {
  const { relaxedMadd } = float.type === "f32" ? f32x4 : f64x2;
  if (target.relaxedSimd) return relaxedMadd;
  return (a, b, c) => float.vector.add(c, float.vector.mul(a, b));
}

/** The lower (upper) halves of two vectors in turn: a0 b0 a1 b1 of f32, a0 b0 of f64. */
function interleave(float: Float, half: "low" | "high", a: Vector, b: Vector): Vector {
  if (float.type === "f64") return shuffle32(a, b, half === "low" ? [0, 1, 4, 5] : [2, 3, 6, 7]);
  return shuffle32(a, b, half === "low" ? [0, 4, 1, 5] : [2, 6, 3, 7]);
}

/** Transposes as many vectors as a vector has lanes. */
export function transpose(f: FunctionBuilder, float: Float, rows: readonly Vector[]): Vector[] {
  const pair = (a: Vector, b: Vector): [Vector, Vector] => [
    f.local("v128", interleave(float, "low", a, b)),
    f.local("v128", interleave(float, "high", a, b)),
  ];
  const [a, b, c, d] = rows as [Vector, Vector, Vector, Vector];
  if (float.type === "f64") return pair(a, b);
  const [ac0, ac1] = pair(a, c);
  const [bd0, bd1] = pair(b, d);
  return [...pair(ac0, bd0), ...pair(ac1, bd1)];
}
