/**
 * Row programs: what a kernel computes from each row of a matrix, written once and compiled by every device.
 *
 * A program is a list of nodes. Each is one number for the row, or one for each element of it:
 *
 *     inputs      matrix: (row, i); vector: (i); number: (row); and with `labels` an integer for each row
 *     scalars     numbers of the launch, and `count`, the length of the row
 *     largest(x)  over a row of element numbers. A NaN wins, the largest of no numbers is -Infinity, a zero is +0
 *     sum(x)      over a row, in float64 by the lanes and chunks of a reduction
 *     columns(x)  over the rows, one sum for each i, in float64 by the chunks of a reduction over an axis before the last
 *     atLabel(x)  the element at the row's label
 *
 * and every op of rules between them, and `weight` and `log`. Inputs are numbers of the dtype, and an op on such rounds to it.
 * Scalars, the count and sums are float64, and so is every op with one of them: the other operand is widened. `narrow` rounds to the dtype.
 * Outputs are element numbers (a matrix), numbers of the row, or columns. One element of a matrix may be another number: that at the label.
 * Rows whose label is `ignoreIndex` give 0 in all outputs, those whose label is no element give NaN. Programs with labels have no columns,
 * and columns need no other reduction.
 *
 * In the dtype f64 everything is float64.
 */
import { check } from "../../errors/errors";
import { isTranscendental, nodeOf, type Op, type Operand, type OpName, operate } from "../expression";
import { fnv1a64 } from "../program";
import { checkNames } from "../rule";

export type RowInput = "matrix" | "vector" | "number";
export type RowOutput = "matrix" | "number" | "columns";
/** Ops beside those of rules. */
export type RowOp = "input" | "scalar" | "constant" | "count" | "weight" | "widen" | "narrow" | RowReduction;
export type RowReduction = "largest" | "sum" | "columns" | "atLabel";

/** One number, or one for each element: `each`. In float64, or else in the dtype: `wide`. */
export interface RowNode {
  readonly op: Op | RowOp;
  /** Indices of earlier nodes. */
  readonly args: readonly number[];
  /** Slot of an input or scalar, value of a constant, else 0. */
  readonly value: number;
  readonly each: boolean;
  readonly wide: boolean;
}

export interface RowProgram {
  /** For messages and generated text only, as all names. */
  readonly name: string;
  readonly inputs: readonly { readonly name: string; readonly kind: RowInput }[];
  readonly scalars: readonly string[];
  readonly labels: boolean;
  readonly nodes: readonly RowNode[];
  readonly outputs: readonly RowResult[];
  /** Equal for programs that compute the same: kernels built ahead are found by it. */
  readonly hash: string;
}

export interface RowResult {
  readonly name: string;
  readonly kind: RowOutput;
  readonly node: number;
  /** The node of the element at the label, where that differs. */
  readonly atLabel?: number;
}

/** A symbol of a row program. */
export class RowExpression implements Operand {
  constructor(
    readonly op: Op | RowOp,
    readonly args: readonly RowExpression[],
    readonly each: boolean,
    readonly wide: boolean,
    readonly value = 0,
  ) {}

  [operate](name: OpName, operands: readonly (Operand | number)[]): RowExpression {
    const op = nodeOf(name);
    const symbols = operands.filter((operand) => operand instanceof RowExpression);
    const wide = symbols.some((operand) => operand.wide);
    const args = operands.map((operand) => {
      if (operand instanceof RowExpression) return wide ? widen(operand) : operand;
      check(
        typeof operand === "number",
        "BAD_ARGUMENT",
        name,
        () => "operands must be symbols of rows or numbers.",
        "",
      );
      return new RowExpression("constant", [], false, wide, operand as number);
    });
    const each = symbols.some((operand) => operand.each);
    const isDefined = !isTranscendental(op) || (op === "log" && wide && !each);
    check(isDefined, "BAD_ARGUMENT", name, () => "rows have no such function.", "Use weight, or log of a sum.");
    return new RowExpression(op, args, each, wide);
  }
}

const apply = (op: RowOp, x: RowExpression, each: boolean, wide: boolean) => new RowExpression(op, [x], each, wide);

/** Rounds to the dtype. */
export const narrow = (x: RowExpression): RowExpression => (x.wide ? apply("narrow", x, x.each, false) : x);
/** As float64. */
export const widen = (x: RowExpression): RowExpression => (x.wide ? x : apply("widen", x, x.each, true));
/** e^x for x <= 0, in the dtype: what an element counts for in a sum. */
export const weight = (x: RowExpression): RowExpression => apply("weight", narrow(x), x.each, false);
/** The largest element of the row. */
export const largest = (x: RowExpression): RowExpression => apply("largest", narrow(x), false, false);
/** The sum of the row. */
export const sum = (x: RowExpression): RowExpression => apply("sum", widen(x), false, true);
/** The sums of the columns. */
export const columns = (x: RowExpression): RowExpression => apply("columns", widen(x), true, true);
/** The element at the row's label. */
export const atLabel = (x: RowExpression): RowExpression => apply("atLabel", narrow(x), false, false);

export interface RowDefinition<Input extends string, Scalar extends string, Output extends string> {
  readonly name: string;
  readonly inputs: Readonly<Record<Input, RowInput>>;
  readonly scalars?: readonly Scalar[];
  readonly labels?: boolean;
  /** `count` is the length of the row. */
  rows(
    inputs: Record<Input, RowExpression>,
    scalars: Record<Scalar | "count", RowExpression>,
  ): Record<Output, RowExpression | { readonly each: RowExpression; readonly atLabel: RowExpression }>;
}

/** A program and the names that launches use. */
export interface Rows<Input extends string = string, Scalar extends string = string, Output extends string = string>
  extends RowProgram {
  /** Never there: the names as types. */
  readonly names?: { readonly input: Input; readonly scalar: Scalar; readonly output: Output };
}

/**
 * Defines a row program. `rows` is traced once, on symbols.
 *
 * @throws OptError BAD_ARGUMENT, DUPLICATE for names that clash or are no identifiers, BAD_ARGUMENT for functions that rows do not have
 * @example
 * import { defineRows, largest, narrow, sum, weight } from "@opt/core/backend";
 * import { div, mul, sub } from "@opt/core";
 *
 * const softmax = defineRows({
 *   name: "softmax", inputs: { x: "matrix" },
 *   rows({ x }) {
 *     const weights = weight(sub(x, largest(x)));
 *     return { y: mul(weights, narrow(div(1, sum(weights)))) };
 *   },
 * });
 */
export function defineRows<Input extends string, Output extends string, Scalar extends string = never>(
  definition: RowDefinition<Input, Scalar, Output>,
): Rows<Input, Scalar, Output> {
  const { name, scalars = [], labels = false } = definition;
  const inputs = (Object.entries(definition.inputs) as [Input, RowInput][]).map(([name, kind]) => ({ name, kind }));
  const symbols = Object.fromEntries(
    inputs.map(({ name, kind }, slot) => [name, new RowExpression("input", [], kind !== "number", false, slot)]),
  ) as Record<Input, RowExpression>;
  const numbers = Object.fromEntries([
    ...scalars.map((scalar, slot) => [scalar, new RowExpression("scalar", [], false, true, slot)]),
    ["count", new RowExpression("count", [], false, true)],
  ]) as Record<Scalar | "count", RowExpression>;
  const results = Object.entries(definition.rows(symbols, numbers)) as [
    Output,
    RowExpression | { each: RowExpression; atLabel: RowExpression },
  ][];
  checkNames(`rows ${name}`, [...inputs.map((input) => input.name), ...scalars, ...results.map(([output]) => output)]);

  const nodes: RowNode[] = [];
  const known = new Map<string, number>();
  const visit = ({ op, args, value, each, wide }: RowExpression): number => {
    const visited = args.map(visit);
    const key = `${op}(${Object.is(value, -0) ? "-0" : value};${visited.join()})${wide ? "w" : ""}`;
    let index = known.get(key);
    if (index === undefined) {
      index = nodes.push({ op, args: visited, value, each, wide }) - 1;
      known.set(key, index);
    }
    return index;
  };
  const outputs = results.map(([name, result]): RowResult => {
    const [value, special] = result instanceof RowExpression ? [result] : [result.each, result.atLabel];
    const kind = value.op === "columns" ? "columns" : value.each ? "matrix" : "number";
    const node = visit(value.op === "columns" ? value : narrow(value));
    return { name, kind, node, ...(special && { atLabel: visit(narrow(special)) }) };
  });
  const program = { name, inputs, scalars, labels, nodes, outputs };
  for (const { kind, node } of outputs) {
    const isPlain =
      kind !== "columns" || !(labels || neededFor(nodes, [node]).some((n) => n !== node && isReduction(nodes[n]!)));
    check(
      isPlain,
      "BAD_ARGUMENT",
      `rows ${name}`,
      () => "columns must be summed from inputs alone, got labels or another reduction.",
      "Make them a program of their own.",
    );
  }
  const kinds = inputs.map(({ kind }) => kind).join();
  const stored = outputs.map(({ kind, node, atLabel }) => `${kind}${node},${atLabel ?? ""}`).join();
  const hash = fnv1a64(`rows 1|${kinds}|${scalars.length}|${labels}|${[...known.keys()].join("")}|${stored}`);
  return { ...program, hash };
}

const REDUCTIONS: ReadonlySet<string> = new Set<RowReduction>(["largest", "sum", "columns", "atLabel"]);

function isReduction({ op }: RowNode): boolean {
  return REDUCTIONS.has(op);
}

/** The given nodes and all that they are computed from, in order. */
export function neededFor(nodes: readonly RowNode[], roots: readonly number[]): number[] {
  const needed = new Set(roots);
  for (let n = nodes.length - 1; n >= 0; n--) if (needed.has(n)) for (const arg of nodes[n]!.args) needed.add(arg);
  return [...needed].sort((a, b) => a - b);
}

/** The nodes that a node of the row or an element is computed from, without going into reductions; itself too. In order. */
export function partsOf({ nodes }: RowProgram, node: number): number[] {
  const parts = new Set<number>();
  const visit = (n: number) => {
    if (parts.has(n) || (n !== node && !nodes[n]!.each)) return;
    for (const arg of nodes[n]!.args) visit(arg);
    parts.add(n);
  };
  visit(node);
  return [...parts];
}

/**
 * Weights that a sum needs and an output too: they are kept in the output's row between the two, rather than computed twice.
 * The output's slot by node.
 */
export function keptWeights(program: RowProgram): ReadonlyMap<number, number> {
  const { nodes, outputs } = program;
  const summed = new Set(nodes.flatMap(({ op, args }) => (op === "sum" ? partsOf(program, args[0]!) : [])));
  const kept = new Map<number, number>();
  outputs.forEach(({ kind, node }, slot) => {
    if (kind !== "matrix") return;
    const found = partsOf(program, node).find((n) => nodes[n]!.op === "weight" && summed.has(n) && !kept.has(n));
    if (found !== undefined) kept.set(found, slot);
  });
  return kept;
}
