/** A rule in jax-js' arithmetic: one function, which jax-js compiles. */
import { jit, numpy as np } from "@jax-js/jax";
import type { Rule } from "@opt/core";
import type { Node, RuleOp } from "@opt/core/backend";
import type { Source, Uniforms } from "./uniforms";

/** jax-js has no fused multiply-add: a product is rounded before the sum. It divides by multiplying with a reciprocal, and so does `inverse` below. */
const OPS: Readonly<Record<Exclude<RuleOp, "div">, (...operands: np.Array[]) => np.Array>> = {
  add: (a, b) => np.add(a!, b!),
  sub: (a, b) => np.subtract(a!, b!),
  mul: (a, b) => np.multiply(a!, b!),
  neg: (a) => np.negative(a!),
  abs: (a) => np.absolute(a!),
  sqrt: (a) => np.sqrt(a!),
  fma: (a, b, c) => np.add(np.multiply(a!, b!), c!),
  max: (a, b) => np.maximum(a!, b!),
  min: (a, b) => np.minimum(a!, b!),
  less: (a, b) => np.less(a!, b!),
  select: (condition, a, b) => np.where(condition!, a!, b!),
};

/** How a value comes about: it is a buffer, is uniform, or an op gives it. */
type Origin =
  | { readonly buffer: number }
  | { readonly uniform: Source }
  | { readonly op: RuleOp; readonly args: readonly (number | Source)[] };

/** What a step gives for the parameter: its new value, or that minus the old one. */
export type Result = "param" | "update";

export interface Form {
  readonly result: Result;
  /**
   * Divisors and their reciprocals are arrays of their own: jax-js' WASM computes kernels with a reciprocal one element at a time, and
   * all others four at a time.
   */
  readonly inversesApart: boolean;
}

/** The function of a rule: the parameter's result and the new state, of buffers and uniform numbers. */
export class RuleFunction {
  readonly #nodes: readonly Node[];
  readonly #states: number;
  /** What is read of the numbers that no element has a part in. */
  readonly #uniforms: readonly Source[];
  readonly #run: (buffers: np.Array[], uniforms: np.Array[]) => np.Array[];

  constructor({ program, buffers }: Rule, { result, inversesApart }: Form) {
    const { nodes, outputs } = program;
    this.#nodes = nodes;
    this.#states = buffers.length - 2;
    const written = (slot: number) => outputs.find((output) => output.slot === slot)?.node;
    const param = written(0)!;
    const state = buffers.slice(2).map((_, i) => written(i + 2));
    const wanted = [param, ...state.filter((node) => node !== undefined)];
    this.#uniforms = this.#uniformsOf(wanted);
    this.#run = jit((given: np.Array[], numbers: np.Array[]): np.Array[] => {
      const known = new Map<number | Source, np.Array>(this.#uniforms.map((source, i) => [source, numbers[i]!]));
      const value = (of: number | Source): np.Array => {
        const found = known.get(of);
        if (found !== undefined) return found.ref;
        const origin = this.#origin(of as number);
        if ("buffer" in origin) return given[origin.buffer]!.ref;
        if ("uniform" in origin) return value(origin.uniform);
        const { op, args } = origin;
        const computed = op === "div" ? np.multiply(value(args[0]!), inverse(args[1]!)) : OPS[op](...args.map(value));
        known.set(of, computed);
        return computed.ref;
      };
      const inverses = new Map<number | Source, np.Array>();
      const inverse = (of: number | Source): np.Array => {
        const made = inverses.get(of) ?? np.reciprocal(value(of));
        inverses.set(of, made);
        return made.ref;
      };
      const whole = (node: number) =>
        nodes[node]!.uniform ? np.broadcastTo(value(node), given[0]!.shape) : value(node);
      const first = result === "param" ? whole(param) : np.subtract(value(param), given[0]!.ref);
      const next = state.map((node, i) => (node === undefined ? given[i + 2]!.ref : whole(node)));
      const apart = inversesApart ? [...inverses].flatMap(([of, array]) => [value(of), array.ref]) : [];
      for (const array of [...known.values(), ...inverses.values(), ...given]) array.dispose();
      return [first, ...next, ...apart];
    });
  }

  /** A quotient by what is uniform is a product, so that its kernel holds no reciprocal: those compute one element at a time. */
  #origin(node: number): Origin {
    const { op, args, value, uniform } = this.#nodes[node]!;
    if (uniform) return { uniform: `value ${node}` };
    if (op === "buffer") return { buffer: value };
    const isByUniform = op === "div" && this.#nodes[args[1]!]!.uniform;
    return isByUniform ? { op: "mul", args: [args[0]!, `inverse ${args[1]!}`] } : { op: op as RuleOp, args };
  }

  #uniformsOf(wanted: readonly number[]): Source[] {
    const found = new Set<Source>();
    const seen = new Set<number>();
    const visit = (of: number | Source): void => {
      if (typeof of === "string") found.add(of);
      else if (!seen.has(of)) {
        seen.add(of);
        const origin = this.#origin(of);
        if ("uniform" in origin) found.add(origin.uniform);
        else if ("op" in origin) for (const arg of origin.args) visit(arg);
      }
    };
    for (const node of wanted) visit(node);
    return [...found];
  }

  /** `buffers`: the parameter, its gradient, its state. They are consumed. */
  apply(buffers: np.Array[], uniforms: Uniforms): { result: np.Array; state: np.Array[] } {
    const [result, ...others] = this.#run(
      buffers,
      this.#uniforms.map((source) => uniforms.get(source).ref),
    );
    for (const array of others.splice(this.#states)) array.dispose();
    return { result: result!, state: others };
  }
}
