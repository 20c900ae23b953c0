/** Every op of a program as vector code. */
import type { BitOp, ComputeDType, Op, Program } from "@opt/core/backend";
import { type FunctionBuilder, type ModuleBuilder, type Value, v128 } from "../assembler";
import type { Target } from "../kernel";
import { emitFma } from "./fma";
import { emitFunction } from "./functions";
import { LANES } from "./lanes";

type Vector = Value<"v128">;
export type Operation = (...operands: Vector[]) => Vector;

/** Writes ops inside one function; made at its entry, where constants are kept. */
export type Operations = (f: FunctionBuilder) => ReadonlyMap<Op | BitOp, Operation>;

/** The ops that a program uses. Adds the imports and helper functions they need. */
export function emitOperations(
  module: ModuleBuilder,
  program: Program,
  dtype: ComputeDType,
  target: Target,
): Operations {
  const { shape } = LANES[dtype];
  const same = (operation: Operation) => () => operation;
  const write = (op: Op | BitOp): ((f: FunctionBuilder) => Operation) => {
    switch (op) {
      case "add":
      case "sub":
      case "mul":
      case "div":
        return same((a, b) => shape[op](a!, b!));
      case "neg":
      case "abs":
      case "sqrt":
        return same((a) => shape[op](a!));
      case "max":
        return same((a, b) => shape.pmax(a!, b!));
      case "min":
        return same((a, b) => shape.pmin(a!, b!));
      case "less":
        return same((a, b) => shape.lt(a!, b!));
      case "select":
        return same((condition, a, b) => v128.bitselect(a!, b!, condition!));
      case "fma":
        return emitFma(module, dtype, target) as (f: FunctionBuilder) => Operation;
      default:
        return emitFunction(module, op as Op as "exp", dtype);
    }
  };
  const ops = new Set(program.nodes.map(({ op }) => op));
  const used = [...ops].filter((op) => op !== "buffer" && op !== "scalar" && op !== "constant");
  const writers = used.map((op) => [op, write(op)] as const);
  return (f) => new Map(writers.map(([op, writer]) => [op, writer(f)]));
}
