/** The definition of row programs: what all devices must agree with. */
import type { ComputeDType, TypedArray } from "../../values/dtype";
import type { Op } from "../expression";
import { evaluateFunction, evaluateOp } from "../interpret";
import type { RowProgram } from "./row-program";

/** Elements of a chunk of a sum, and the lanes that it is added in. */
export const CHUNK = 32_768;
const LANES = 16;

/** Rows of a chunk of a sum of columns. */
export function chunkRows(length: number): number {
  return Math.max(1, Math.floor(CHUNK / Math.min(length, 64)));
}

/** The lanes of a chunk as one number. */
export function sumOfLanes(lanes: Float64Array): number {
  for (let width = LANES / 2; width > 0; width /= 2) {
    for (let lane = 0; lane < width; lane++) lanes[lane]! += lanes[lane + width]!;
  }
  return lanes[0]!;
}

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
    return compute(
      op,
      wide,
      args.map((arg) => elementOf(arg, i)),
    );
  };
  const compute = (op: string, wide: boolean, [a, b, c]: readonly number[]): number => {
    if (op === "weight" || op === "log") return call(op, a!);
    if (op === "widen" || op === "columns") return a!;
    return op === "narrow" ? round(a!) : evaluateOp(op as Op, wide ? "f64" : dtype, a!, b, c);
  };
  const call = (name: "weight" | "log", x: number) =>
    dtype === "f32" ? evaluateFunction(name, x) : name === "log" ? Math.log(x) : Math.exp(x);
  const sum = (n: number): number => {
    let total = 0;
    for (let start = 0; start < length; start += CHUNK) {
      const lanes = new Float64Array(LANES);
      for (let i = start; i < Math.min(start + CHUNK, length); i++) lanes[i % LANES]! += elementOf(n, i);
      total += sumOfLanes(lanes);
    }
    return total;
  };
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
    if (op === "sum") return sum(args[0]!);
    if (op === "largest") return largest(args[0]!);
    if (op === "atLabel") return elementOf(args[0]!, labels![row]!);
    return compute(
      op,
      wide,
      args.map((arg) => numbers[arg]!),
    );
  };

  const totals = outputs.map((_, k) => new Float64Array(program.outputs[k]!.kind === "columns" ? length : 0));
  const chunks = totals.map((total) => total.slice());
  for (; row < rows; row++) {
    const label = labels?.[row] ?? 0;
    const missing =
      labels && label === ignoreIndex ? 0 : labels && !(label >= 0 && label < length) ? Number.NaN : undefined;
    if (missing === undefined) {
      nodes.forEach(({ each }, n) => {
        if (!each) numbers[n] = numberOf(n);
      });
    }
    program.outputs.forEach(({ kind, node, atLabel }, k) => {
      const output = outputs[k]!;
      if (kind === "number") output[row] = missing ?? numbers[node]!;
      for (let i = 0; i < length && kind !== "number"; i++) {
        if (kind === "columns") chunks[k]![i]! += elementOf(node, i);
        else
          output[row * length + i] =
            missing ?? (atLabel !== undefined && i === label ? numbers[atLabel]! : elementOf(node, i));
      }
    });
    if ((row + 1) % chunkRows(length) !== 0 && row + 1 < rows) continue;
    chunks.forEach((chunk, k) => {
      for (let i = 0; i < chunk.length; i++) totals[k]![i]! += chunk[i]!;
      chunk.fill(0);
    });
  }
  totals.forEach((total, k) => {
    if (program.outputs[k]!.kind === "columns") outputs[k]!.set(total);
  });
}
