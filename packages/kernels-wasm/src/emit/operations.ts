/** Every op of a program as vector code. */
import type { ComputeDType, Op, Program } from "@opt/core/backend";
import { type ModuleBuilder, type Value, v128 } from "../assembler";
import type { Target } from "../kernel";
import { emitFma } from "./fma";
import { emitFunction } from "./functions";
import { LANES } from "./lanes";

type Vector = Value<"v128">;
export type Operation = (...operands: Vector[]) => Vector;

/** The ops that a program uses. Adds the imports and helper functions they need, so it comes before the module's own functions. */
export function emitOperations(
  module: ModuleBuilder,
  program: Program,
  dtype: ComputeDType,
  target: Target,
): ReadonlyMap<Op, Operation> {
  const { shape } = LANES[dtype];
  const write = (op: Op): Operation => {
    switch (op) {
      case "add":
      case "sub":
      case "mul":
      case "div":
        return (a, b) => shape[op](a!, b!);
      case "neg":
      case "abs":
      case "sqrt":
        return (a) => shape[op](a!);
      case "max":
        return (a, b) => shape.pmax(a!, b!);
      case "min":
        return (a, b) => shape.pmin(a!, b!);
      case "less":
        return (a, b) => shape.lt(a!, b!);
      case "select":
        return (condition, a, b) => v128.bitselect(a!, b!, condition!);
      case "fma":
        return emitFma(module, dtype, target) as Operation;
      default:
        return emitFunction(module, op, dtype);
    }
  };
  const ops = new Set(program.nodes.map(({ op }) => op));
  const used = [...ops].filter((op) => op !== "buffer" && op !== "scalar" && op !== "constant");
  return new Map(used.map((op) => [op, write(op)]));
}
