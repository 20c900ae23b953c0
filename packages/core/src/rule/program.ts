/** A traced expression: a flat list of nodes in evaluation order, each computed once. This is what backends compile. */
import type { BitOp, Expression, Op } from "./expression";

export interface Node {
  readonly op: Op | BitOp | "buffer" | "scalar" | "constant";
  /** Indices of earlier nodes. */
  readonly args: readonly number[];
  /** Slot of a buffer or scalar, value of a constant, else 0. */
  readonly value: number;
  /** True if no buffer is involved: computed once per launch, not once per element. */
  readonly uniform: boolean;
}

export interface Program {
  readonly buffers: readonly string[];
  readonly scalars: readonly string[];
  readonly nodes: readonly Node[];
  /** What is stored: for rules `slot` is the buffer written, for maps it is 0, the output. */
  readonly outputs: readonly { readonly slot: number; readonly node: number }[];
}

/** The program of expressions: equal ones are computed once. */
export function trace(
  buffers: readonly string[],
  scalars: readonly string[],
  outputs: readonly { slot: number; expression: Expression }[],
): Program {
  const nodes: Node[] = [];
  const indexByKey = new Map<string, number>();
  const indexOf = new Map<Expression, number>();
  const visit = (expression: Expression): number => {
    const known = indexOf.get(expression);
    if (known !== undefined) return known;
    const args = expression.args.map(visit);
    const { op } = expression;
    const value = Object.is(expression.value, -0) ? "-0" : String(expression.value);
    const key = `${op} ${value} ${args.join(" ")}`;
    let index = indexByKey.get(key);
    if (index === undefined) {
      index = nodes.length;
      const uniform = op !== "buffer" && args.every((arg) => nodes[arg]!.uniform);
      nodes.push({ op, args, value: expression.value, uniform });
      indexByKey.set(key, index);
    }
    indexOf.set(expression, index);
    return index;
  };
  return {
    buffers,
    scalars,
    nodes,
    outputs: outputs.map(({ slot, expression }) => ({ slot, node: visit(expression) })),
  };
}

/** Identity of what a program computes: the same for equal programs whatever their buffers and scalars are called. */
export function hashProgram(program: Program): string {
  const nodes = program.nodes.map(
    ({ op, args, value }) => `${op}(${Object.is(value, -0) ? "-0" : value};${args.join(",")})`,
  );
  const outputs = program.outputs.map(({ slot, node }) => `${slot}=${node}`);
  return fnv1a64(`1|${program.buffers.length}|${program.scalars.length}|${nodes.join("")}|${outputs.join(",")}`);
}

/** FNV-1a, 64 bits, as 16 hexadecimal digits. */
export function fnv1a64(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (let i = 0; i < text.length; i++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, "0");
}
