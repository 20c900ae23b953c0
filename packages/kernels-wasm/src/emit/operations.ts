/** Every op of a program as vector code. */
import { type BitOp, type ComputeDType, isTranscendental, type Op, type Program, type RuleOp } from "@opt/core/backend";
import type { FunctionBuilder, ModuleBuilder } from "../assembler";
import type { Target } from "../kernel";
import { emitArithmetic, type Operation } from "./arithmetic";
import { emitFunction } from "./functions";

/** Writes ops inside one function; made at its entry, where constants are kept. */
export type Operations = (f: FunctionBuilder) => ReadonlyMap<Op | BitOp, Operation>;

/** The ops that a program uses. Adds the imports and helper functions they need. */
export function emitOperations(
  module: ModuleBuilder,
  program: Program,
  dtype: ComputeDType,
  target: Target,
): Operations {
  const ops = new Set(program.nodes.map(({ op }) => op));
  const used = [...ops].filter((op) => op !== "buffer" && op !== "scalar" && op !== "constant");
  const writers = used.map((op) => {
    const write = isTranscendental(op)
      ? emitFunction(module, op, dtype, target)
      : emitArithmetic(module, op as RuleOp | BitOp, dtype, target);
    return [op, write] as const;
  });
  return (f) => new Map(writers.map(([op, writer]) => [op, writer(f)]));
}
