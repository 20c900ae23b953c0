/** exp, log, tanh, erf, sin, cos and pow on vectors. */
import type { ComputeDType, Op } from "@opt/core/backend";
import { f64x2, type ModuleBuilder, type Value } from "../assembler";
import type { HostFunction } from "../host";

type Vector = Value<"v128">;

/** Adds a function to the module. float64 calls JavaScript's, lane by lane. */
export function emitFunction(
  module: ModuleBuilder,
  op: Exclude<HostFunction, "fma64">,
  _dtype: ComputeDType,
): (...operands: Vector[]) => Vector {
  const host = module.import(op, { parameters: op === "pow" ? ["f64", "f64"] : ["f64"], result: "f64" }) as (
    ...operands: Value<"f64">[]
  ) => Value<"f64">;
  return (...operands) => {
    const lane = (index: number) => host(...operands.map((operand) => f64x2.extractLane(operand, index)));
    return f64x2.replaceLane(f64x2.splat(lane(0)), 1, lane(1));
  };
}
export type _Unused = Op;
