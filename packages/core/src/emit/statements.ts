/** The statement writer shared by the C-like dialects. */

import type { Program } from "../rule/program";
import type { ComputeDType } from "../values/dtype";
import type { Dialect } from "./dialect";

export interface Statements {
  /** Computed once, before the loop over elements: scalars, constants and what follows from them alone. */
  readonly uniform: readonly string[];
  /** For one element: loads, computation, stores. */
  readonly element: readonly string[];
}

export interface Access {
  /** Reads a scalar already rounded to the dtype. */
  scalar(slot: number, name: string): string;
  load(slot: number, name: string): string;
  /** A whole statement. */
  store(slot: number, name: string, value: string): string;
}

/**
 * Writes a program as statements. Buffer `expAvg` is loaded as `v_expAvg`, which no keyword of a language and no name around it is, and
 * its new value is `expAvgNew`; a value used once is written where it is used, others get a name.
 */
export function writeStatements(program: Program, dialect: Dialect, dtype: ComputeDType, access: Access): Statements {
  const { nodes, outputs, buffers, scalars } = program;
  const uses = new Array<number>(nodes.length).fill(0);
  const usedPerElement = new Array<boolean>(nodes.length).fill(false);
  for (const { args, uniform } of nodes) {
    for (const arg of args) {
      uses[arg]!++;
      if (!uniform) usedPerElement[arg] = true;
    }
  }
  for (const { node } of outputs) {
    uses[node]!++;
    usedPerElement[node] = true;
  }
  const outputName = new Map<number, string>();
  for (const { slot, node } of outputs) if (!outputName.has(node)) outputName.set(node, `${buffers[slot] ?? "out"}New`);

  const text: string[] = [];
  const uniform: string[] = [];
  const element: string[] = [];
  let temporaries = 0;
  nodes.forEach(({ op, args, value, uniform: isUniform }, n) => {
    const lines = isUniform ? uniform : element;
    const name = (local: string, written: string) => {
      lines.push(dialect.declare(local, written, dtype, op === "less" ? "condition" : "number"));
      text[n] = local;
    };
    if (op === "constant") text[n] = dialect.constant(value, dtype);
    else if (op === "scalar") name(`v_${scalars[value]}`, access.scalar(value, scalars[value]!));
    else if (op === "buffer") name(`v_${buffers[value]}`, access.load(value, buffers[value]!));
    else {
      const written = dialect.ops[op]![dtype](text[args[0]!]!, text[args[1] ?? 0]!, text[args[2] ?? 0]!);
      const local = outputName.get(n);
      if (local !== undefined) name(local, written);
      else if (uses[n]! > 1 || (isUniform && usedPerElement[n])) name(`t${temporaries++}`, written);
      else text[n] = written;
    }
  });
  for (const { slot, node } of outputs) element.push(access.store(slot, buffers[slot] ?? "out", text[node]!));
  return { uniform, element };
}
