/** Writes a program's computation of one vector of elements. */
import type { BitOp, ComputeDType, Op, Program } from "@opt/core/backend";
import type { FunctionBuilder, Local, Value } from "../assembler";
import type { Operation } from "./arithmetic";
import { LANES } from "./lanes";

type Vector = Value<"v128">;

export class ProgramWriter {
  /** Values that are kept: uniform ones that elements need, and those used more than once. */
  readonly #locals = new Map<number, Local<"v128">>();
  readonly #outputs: readonly Local<"v128">[];
  readonly #operations: ReadonlyMap<Op | BitOp, Operation>;

  /** Computes what is uniform at once, in all lanes. `scalars` are the launch's, still in float64. */
  constructor(
    private readonly f: FunctionBuilder,
    private readonly program: Program,
    private readonly dtype: ComputeDType,
    operations: (f: FunctionBuilder) => ReadonlyMap<Op | BitOp, Operation>,
    scalars: readonly Value<"f64">[],
  ) {
    this.#operations = operations(f);
    const { nodes, outputs } = program;
    const uses = new Array<number>(nodes.length).fill(0);
    const usedPerElement = new Set(outputs.map(({ node }) => node));
    for (const { args, uniform } of nodes) {
      for (const arg of args) {
        uses[arg]!++;
        if (!uniform) usedPerElement.add(arg);
      }
    }
    nodes.forEach(({ op, uniform }, n) => {
      if (op === "constant") return;
      if (uniform ? usedPerElement.has(n) || uses[n]! > 1 : uses[n]! > 1) this.#locals.set(n, f.local("v128"));
    });
    this.#outputs = outputs.map(() => f.local("v128"));
    this.#write(true, (slot) => LANES[dtype].splat(scalars[slot]!));
  }

  /** Computes one vector. All loads come before the first output may be stored. */
  element(load: (slot: number) => Vector): readonly Local<"v128">[] {
    const values = this.#write(false, load);
    for (const [i, { node }] of this.program.outputs.entries()) this.f.set(this.#outputs[i]!, values[node]!);
    return this.#outputs;
  }

  #write(uniform: boolean, input: (slot: number) => Vector): Vector[] {
    const values: Vector[] = [];
    this.program.nodes.forEach(({ op, args, value, uniform: isUniform }, n) => {
      const local = this.#locals.get(n);
      if (op === "constant") {
        values[n] = this.f.constant(LANES[this.dtype].constant(value));
        return;
      }
      if (isUniform !== uniform) {
        if (local !== undefined) values[n] = local;
        return;
      }
      const operands = args.map((arg) => values[arg]!);
      const written = op === "buffer" || op === "scalar" ? input(value) : this.#operations.get(op)!(...operands);
      if (local !== undefined) this.f.set(local, written);
      values[n] = local ?? written;
    });
    return values;
  }
}
