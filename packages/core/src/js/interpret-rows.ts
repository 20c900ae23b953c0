/** The definition of row programs: what all devices must agree with. */

import type { Op } from "../rule/expression";
import { evaluateFunction, evaluateOp } from "../rule/interpret";
import { neededFor, type RowProgram } from "../rule/rows/row-program";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { sumColumns, sumOf } from "./sum";

/** The memory of a launch. */
export interface RowArrays {
  readonly inputs: readonly TypedArray[];
  readonly labels?: TypedArray | undefined;
  readonly outputs: readonly TypedArray[];
  readonly scalars: readonly number[];
  readonly rows: number;
  readonly length: number;
  readonly ignoreIndex: number;
}

/** Runs a row program number by number: slow, for engines that forbid generated code, and for tests. */
export function interpretRows(program: RowProgram, dtype: ComputeDType, launch: RowArrays): void {
  const { nodes, inputs } = program;
  const { labels, outputs, scalars, rows, length, ignoreIndex } = launch;
  const round = dtype === "f32" ? Math.fround : (x: number) => x;
  const numbers = new Float64Array(nodes.length);
  let row = 0;

  /** An element at a place, or a number of the row. */
  const elementOf = (n: number, i: number): number => {
    const { op, args, value, each, wide } = nodes[n]!;
    if (!each) return numbers[n]!;
    if (op === "input") return launch.inputs[value]![inputs[value]!.kind === "matrix" ? row * length + i : i]!;
    const at = (slot: number) => (slot < args.length ? elementOf(args[slot]!, i) : 0);
    return compute(op, wide, at(0), at(1), at(2));
  };
  const compute = (op: string, wide: boolean, a: number, b: number, c: number): number => {
    if (op === "weight" || op === "log") return call(op, a);
    if (op === "widen" || op === "columns") return a;
    return op === "narrow" ? round(a) : evaluateOp(op as Op, wide ? "f64" : dtype, a, b, c);
  };
  const call = (name: "weight" | "log", x: number) =>
    dtype === "f32" ? evaluateFunction(name, x) : name === "log" ? Math.log(x) : Math.exp(x);
  const largest = (n: number): number => {
    let most = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < length; i++) {
      const value = elementOf(n, i);
      if (value > most || Number.isNaN(value)) most = value;
    }
    return most + 0;
  };
  const numberOf = (n: number): number => {
    const { op, args, value, wide } = nodes[n]!;
    if (op === "input") return launch.inputs[value]![row]!;
    if (op === "scalar") return scalars[value]!;
    if (op === "constant") return wide ? value : round(value);
    if (op === "count") return length;
    if (op === "sum") return sumOf(length, (i) => elementOf(args[0]!, i));
    if (op === "largest") return largest(args[0]!);
    if (op === "atLabel") return elementOf(args[0]!, labels![row]!);
    const at = (slot: number) => numbers[args[slot]!] ?? 0;
    return compute(op, wide, at(0), at(1), at(2));
  };

  for (; row < rows; row++) {
    const label = labels?.[row] ?? 0;
    const isMissing = program.labels && (label === ignoreIndex || label < 0 || label >= length);
    const missing = label === ignoreIndex ? 0 : Number.NaN;
    nodes.forEach(({ each }, n) => {
      if (!each && !isMissing) numbers[n] = numberOf(n);
    });
    program.outputs.forEach(({ kind, node, atLabel }, slot) => {
      const output = outputs[slot]!;
      if (kind === "number") output[row] = isMissing ? missing : numbers[node]!;
      for (let i = 0; i < length && kind === "matrix"; i++) {
        const value = atLabel !== undefined && i === label ? numbers[atLabel]! : elementOf(node, i);
        output[row * length + i] = isMissing ? missing : value;
      }
    });
  }
  program.outputs.forEach(({ kind, node }, slot) => {
    if (kind !== "columns") return;
    const needed = neededFor(nodes, [node]).filter((n) => !nodes[n]!.each);
    const sums = sumColumns(rows, length, (at, i) => {
      row = at;
      for (const n of needed) numbers[n] = numberOf(n);
      return elementOf(node, i);
    });
    outputs[slot]!.set(sums);
  });
}
