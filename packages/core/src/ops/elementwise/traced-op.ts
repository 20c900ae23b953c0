/** An elementwise op and its derivatives as programs, traced once for each pattern of operands. */
import { check } from "../../errors/errors";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { integerForward } from "../compute";
import { ELEMENTWISE, type ElementwiseName } from "./elementwise-table";

/** The programs of an op for one pattern of tensor and number operands: tensors are buffers, numbers are scalars. */
export interface TracedOp {
  readonly forward: Program;
  /** Per tensor operand: what computes its gradient, and which of [g, y, ...tensors] it reads. */
  readonly derivatives: readonly (Derivative | null)[];
  /** Of the tensor operands, those of `ElementwiseDefinition.flat`. */
  readonly flat: readonly number[];
  /** What backward needs of [g, y, ...tensors], by the bits of the operands that require gradients. */
  readonly saved: Map<number, readonly number[]>;
}

export interface Derivative {
  readonly program: Program;
  readonly reads: readonly number[];
  /** The one of `ElementwiseDefinition.recorded`. */
  readonly recorded?: Derivative;
}

/** By pattern, by name. */
const cache = new Map<string, Map<string, TracedOp>>();

/** @param wraps integers are computed modulo 2^32 */
export function traceOp(name: ElementwiseName, pattern: string, wraps: boolean): TracedOp {
  const key = wraps ? `${pattern} wrapped` : pattern;
  const known = cache.get(name)?.get(key);
  if (known !== undefined) return known;
  const { forward, gradients, recorded, flat = [], rounds = false } = ELEMENTWISE[name];
  const count = gradients.length + Number(rounds);
  check(
    pattern.length === count,
    "BAD_ARGUMENT",
    name,
    () => `takes ${count} operands, got ${pattern.length}.`,
    "Check the call.",
  );
  const kinds = [...pattern];
  const tensorNames = kinds.flatMap((kind, i) => (kind === "t" ? ["abc"[i]!] : []));
  const scalarNames = kinds.flatMap((kind, i) => (kind === "n" ? ["abc"[i]!] : []));
  const symbols = (buffers: readonly string[]) =>
    kinds.map((kind, i) => {
      const names = kind === "t" ? buffers : scalarNames;
      return new Expression(kind === "t" ? "buffer" : "scalar", [], names.indexOf("abc"[i]!));
    });
  const traceDerivative = (derivative: NonNullable<(typeof gradients)[number]>) => {
    const buffers = ["g", "y", ...tensorNames];
    const [g, y] = [0, 1].map((slot) => new Expression("buffer", [], slot)) as [Expression, Expression];
    const expression = derivative(g, y, ...symbols(buffers));
    return onlyWhatIsRead(trace(buffers, scalarNames, [{ slot: 0, expression }]));
  };
  const operands = symbols(tensorNames);
  const plain = forward(...operands);
  const expression = wraps ? integerForward(name, plain, operands) : plain;
  const traced: TracedOp = {
    forward: trace(tensorNames, scalarNames, [{ slot: 0, expression }]),
    derivatives: kinds.flatMap((kind, i) => {
      const derivative = gradients[i];
      if (kind !== "t") return [];
      if (!derivative) return [null];
      const again = recorded?.[i];
      return [{ ...traceDerivative(derivative), ...(again && { recorded: traceDerivative(again) }) }];
    }),
    flat: kinds
      .flatMap((kind, i) => (kind === "t" ? [i] : []))
      .flatMap((i, place) => (flat.includes(i) ? [place] : [])),
    saved: new Map(),
  };
  const ofName = cache.get(name) ?? new Map<string, TracedOp>();
  cache.set(name, ofName.set(key, traced));
  return traced;
}

/** Renumbers the buffers of a program to those that it reads. */
function onlyWhatIsRead(program: Program): Derivative {
  const reads = [...new Set(program.nodes.filter((node) => node.op === "buffer").map((node) => node.value))].sort(
    (a, b) => a - b,
  );
  const nodes = program.nodes.map((node) =>
    node.op === "buffer" ? { ...node, value: reads.indexOf(node.value) } : node,
  );
  return { program: { ...program, buffers: reads.map((slot) => program.buffers[slot]!), nodes }, reads };
}
