/** Sums and maxima of contiguous elements: in the dtype over short blocks, in float64 across them. */
import type { ComputeDType, StoredDType } from "@opt/core/backend";
import { type Callable, f32, f64, i32, type ModuleBuilder, type Value } from "../assembler";
import { accessTo } from "../emit/stored";
import type { Float } from "./float";

/** nonFinite: the sum of differences of elements from themselves, 0 or NaN. */
export type Fold = "sum" | "squares" | "max" | "nonFinite";

/** Elements summed in the dtype: 64 in each of the 16 lanes of f32, so that rounding errors stay near one unit. */
export const BLOCK = 1024;
const VECTORS = 4;

export function widen(float: Float, value: Value<ComputeDType>): Value<"f64"> {
  return float.type === "f32" ? f64.promoteF32(value as Value<"f32">) : (value as Value<"f64">);
}

export function narrow(float: Float, value: Value<"f64">): Value<ComputeDType> {
  return float.type === "f32" ? f32.demoteF64(value) : value;
}

/** What folding starts from. */
export function identityOf(fold: Fold): number {
  return fold === "max" ? Number.NEGATIVE_INFINITY : 0;
}

/** Combines folded values. */
export function combine(fold: Fold, a: Value<"f64">, b: Value<"f64">): Value<"f64"> {
  return fold === "max" ? f64.max(a, b) : f64.add(a, b);
}

/** Folds one more vector, or one more element, into a sum. */
export function accumulate(float: Float, fold: Fold) {
  const { vector, scalar } = float;
  const by = <Any>({ add, sub, mul, max }: Record<"add" | "sub" | "mul" | "max", (a: Any, b: Any) => Any>) => {
    const term = (x: Any) => (fold === "squares" ? mul(x, x) : fold === "nonFinite" ? sub(x, x) : x);
    return (sum: Any, x: Any) => (fold === "max" ? max(sum, x) : add(sum, term(x)));
  };
  return { vector: by<Value<"v128">>(vector), scalar: by<Value<ComputeDType>>(scalar) };
}

/** (address, count): the fold of `count` elements, stored so, from `address` on, in float64. */
export function emitFold(
  module: ModuleBuilder,
  float: Float,
  fold: Fold,
  stored?: StoredDType,
): Callable<readonly ["i32", "i32"], "f64"> {
  const { lanes, scalar, vector } = float;
  const add = accumulate(float, fold);
  return module.function({ parameters: ["i32", "i32"], result: "f64" }, (f, address, count) => {
    const total = f.local("f64", identityOf(fold));
    const identity = f.local("v128", vector.splat(scalar.const(identityOf(fold))));
    const sums = Array.from({ length: VECTORS }, () => f.local("v128"));
    const x = f.local("v128");
    const { bytes, load, loadOne } = accessTo(f, float.type, stored);
    f.while(i32.geU(count, VECTORS * lanes), () => {
      const whole = f.local("i32", i32.and(f.least(count, BLOCK), -VECTORS * lanes));
      f.decrease(count, whole);
      for (const sum of sums) f.set(sum, identity);
      f.doWhile(() => {
        sums.forEach((sum, v) => {
          f.set(x, load(address, v * lanes * bytes));
          f.set(sum, add.vector(sum, x));
        });
        f.increase(address, VECTORS * lanes * bytes);
        f.decrease(whole, VECTORS * lanes);
      }, whole);
      for (const sum of sums) {
        for (let lane = 0; lane < lanes; lane++) {
          f.set(total, combine(fold, total, widen(float, vector.extractLane(sum, lane))));
        }
      }
    });
    const tail = f.local(float.type, scalar.const(identityOf(fold)));
    f.walk(count, 1, [[address, bytes]], () => {
      const element = f.local(float.type, vector.extractLane(loadOne(address), 0));
      f.set(tail, add.scalar(tail, element));
    });
    return combine(fold, total, widen(float, tail));
  });
}
