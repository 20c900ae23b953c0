/** Rules in jax-js' arithmetic: a rule becomes a few functions that jax-js compiles. */
import { jit, numpy as np } from "@jax-js/jax";
import type { Rule } from "@opt/core";
import type { Node, RuleOp } from "@opt/core/backend";
import type { Uniforms } from "./uniforms";

/** jax-js has no fused multiply-add: a product is rounded before the sum. */
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

/** What a stage reads: a buffer by its slot, a node's value, or 1 / value. */
type Source = `${"buffer" | "value" | "inverse"} ${number}`;

const PARAM: Source = "buffer 0";

/** How a stage gets a value: reads it, or computes it of nodes and of what it reads. */
type Origin = Source | readonly [op: Exclude<RuleOp, "div">, ...args: (number | Source)[]];

interface Stage {
  readonly inputs: readonly Source[];
  /** Nodes that later stages or the state want: what `run` gives. The stage of the parameter gives the update after them. */
  readonly kept: readonly number[];
  readonly run: (inputs: np.Array[]) => np.Array[];
}

/**
 * The functions of a rule. jax-js divides by multiplying with a reciprocal, and a kernel that holds one computes element after element
 * in place of four at once. So reciprocals stand alone, between the stages.
 */
export class StagedRule {
  private readonly nodes: readonly Node[];
  private readonly param: number;
  /** The node of each state buffer's new value. */
  private readonly state: readonly number[];
  /** How many reciprocals of elements come before a node: the stage in which it can be computed. */
  private readonly depths: readonly number[];
  /** Nodes that something is divided by, element by element. */
  private readonly divisors: ReadonlySet<number>;
  private readonly kept: ReadonlySet<number>;
  private readonly stages: readonly Stage[];

  constructor({ program, buffers }: Rule) {
    const { nodes, outputs } = program;
    this.nodes = nodes;
    const written = (slot: number) =>
      outputs.find((output) => output.slot === slot)?.node ??
      nodes.findIndex(({ op, value }) => op === "buffer" && value === slot);
    this.param = written(0);
    this.state = buffers.slice(2).map((_, i) => written(i + 2));
    const divided = nodes.filter(({ op, args }) => op === "div" && !nodes[args[1]!]!.uniform);
    this.divisors = new Set(divided.map(({ args }) => args[1]!));
    const depths: number[] = [];
    for (const { op, args } of nodes) {
      const isAfter = op === "div" && this.divisors.has(args[1]!);
      depths.push(Math.max(0, ...args.map((arg) => depths[arg]!), isAfter ? depths[args[1]!]! + 1 : 0));
    }
    this.depths = depths;
    this.kept = new Set([...this.state, ...this.divisors].filter((node) => this.isComputed(node)));
    const last = Math.max(...[this.param, ...this.kept].map((node) => depths[node]!));
    this.stages = Array.from({ length: last + 1 }, (_, depth) => this.stage(depth));
  }

  /** False for what is uniform or a buffer as it is. */
  private isComputed(node: number): boolean {
    return this.nodes[node] !== undefined && !this.nodes[node].uniform && this.nodes[node].op !== "buffer";
  }

  private origin(node: number, depth: number): Origin {
    const { op, args, value, uniform } = this.nodes[node]!;
    if (uniform || (this.kept.has(node) && this.depths[node]! < depth)) return `value ${node}`;
    if (op === "buffer") return `buffer ${value}`;
    if (op === "div") return ["mul", args[0]!, `inverse ${args[1]!}`];
    return [op as keyof typeof OPS, ...args];
  }

  private stage(depth: number): Stage {
    const kept = [...this.kept].filter((node) => this.depths[node] === depth);
    const hasUpdate = this.depths[this.param] === depth;
    const wanted = hasUpdate ? [...kept, this.param] : kept;
    const inputs = [...this.sources(wanted, depth, hasUpdate)];
    const run = jit((given: np.Array[]): np.Array[] => {
      const arrays = new Map<number | Source, np.Array>(inputs.map((source, i) => [source, given[i]!]));
      const value = (of: number | Source): np.Array => {
        const known = arrays.get(of);
        if (known !== undefined) return known.ref;
        const origin = this.origin(of as number, depth);
        if (typeof origin === "string") return value(origin);
        const [op, ...args] = origin;
        const computed = OPS[op](...args.map(value));
        arrays.set(of, computed);
        return computed.ref;
      };
      const results = kept.map(value);
      if (hasUpdate) results.push(np.subtract(value(this.param), value(PARAM)));
      for (const array of arrays.values()) array.dispose();
      return results;
    });
    return { inputs, kept, run };
  }

  private sources(nodes: readonly number[], depth: number, hasUpdate: boolean): Set<Source> {
    const found = new Set<Source>(hasUpdate ? [PARAM] : []);
    const seen = new Set<number>();
    const visit = (of: number | Source): void => {
      const origin = typeof of === "string" ? of : this.origin(of, depth);
      if (typeof origin === "string") found.add(origin);
      else if (!seen.has(of as number)) {
        seen.add(of as number);
        for (const arg of origin.slice(1)) visit(arg as number | Source);
      }
    };
    for (const node of nodes) visit(node);
    return found;
  }

  /**
   * The update of a parameter, new minus old, and its new state. `buffers` (the parameter, its gradient, its state) are consumed.
   */
  apply(buffers: readonly np.Array[], uniforms: Uniforms): { update: np.Array; state: np.Array[] } {
    const { shape } = buffers[0]!;
    const arrays = new Map<Source, np.Array>(buffers.map((buffer, slot) => [`buffer ${slot}`, buffer]));
    const read = (source: Source) => (arrays.get(source) ?? uniforms.get(source)).ref;
    let update: np.Array | undefined;
    for (const { inputs, kept, run } of this.stages) {
      const results = run(inputs.map(read));
      kept.forEach((node, i) => {
        arrays.set(`value ${node}`, results[i]!);
        if (this.divisors.has(node)) arrays.set(`inverse ${node}`, np.reciprocal(results[i]!.ref));
      });
      update ??= results[kept.length];
    }
    const state = this.state.map((node) => {
      const origin = this.origin(node, Number.POSITIVE_INFINITY);
      return this.nodes[node]!.uniform ? np.broadcastTo(read(origin as Source), shape) : read(origin as Source);
    });
    for (const array of arrays.values()) array.dispose();
    return { update: update!, state };
  }
}
