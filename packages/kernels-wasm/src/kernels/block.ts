/** Folds of contiguous elements whose order does not matter, in the dtype; and numbers between it and float64. */
import type { ComputeDType, StoredDType } from "@opt/core/backend";
import { type Callable, f32, f64, type ModuleBuilder, type Value } from "../assembler";
import { accessTo } from "../emit/stored";
import type { Float } from "./float";

/** nonFinite: the sum of differences of elements from themselves, 0 or NaN. */
export type Fold = "max" | "nonFinite";

const VECTORS = 4;

export function widen(float: Float, value: Value<ComputeDType>): Value<"f64"> {
  return float.type === "f32" ? f64.promoteF32(value as Value<"f32">) : (value as Value<"f64">);
}

export function narrow(float: Float, value: Value<"f64">): Value<ComputeDType> {
  return float.type === "f32" ? f32.demoteF64(value) : value;
}

/** (address, count): the fold of `count` elements, stored so, from `address` on. */
export function emitFold(
  module: ModuleBuilder,
  float: Float,
  fold: Fold,
  stored?: StoredDType,
): Callable<readonly ["i32", "i32"], "f64"> {
  const { lanes, scalar, vector } = float;
  const identity = scalar.const(fold === "max" ? Number.NEGATIVE_INFINITY : 0);
  const add = (a: Value<"v128">, x: Value<"v128">) =>
    fold === "max" ? vector.max(a, x) : vector.add(a, vector.sub(x, x));
  const combine = fold === "max" ? scalar.max : scalar.add;
  return module.function({ parameters: ["i32", "i32"], result: "f64" }, (f, address, count) => {
    const folds = Array.from({ length: VECTORS }, () => f.local("v128", vector.splat(identity)));
    const x = f.local("v128");
    const { bytes, load, loadOne } = accessTo(f, float.type, stored);
    const elements = VECTORS * lanes;
    f.walk(count, elements, [[address, elements * bytes]], () => {
      folds.forEach((folded, v) => {
        f.set(x, load(address, v * lanes * bytes));
        f.set(folded, add(folded, x));
      });
    });
    const rest = f.local(float.type, identity);
    f.walk(count, 1, [[address, bytes]], () => {
      f.set(x, loadOne(address));
      f.set(x, fold === "max" ? x : vector.sub(x, x));
      f.set(rest, combine(rest, vector.extractLane(x, 0)));
    });
    const [all, ...others] = folds;
    for (const folded of others) f.set(all!, fold === "max" ? vector.max(all!, folded) : vector.add(all!, folded));
    const ofLanes = Array.from({ length: lanes }, (_, lane) => vector.extractLane(all!, lane));
    return widen(float, [rest, ...ofLanes].reduce(combine));
  });
}
