/** Row programs: the numbers of a row in order, each reduction a walk along it, and sums of columns. */
import {
  type ComputeDType,
  keptWeights,
  type Launch,
  neededFor,
  type Op,
  partsOf,
  type RowProgram,
  type RuleOp,
  resultsOfColumns,
  resultsOfRows,
  rootsOf,
  type Spec,
} from "@opt/core/backend";
import { type FunctionBuilder, f64, f64x2, i32, type Local, ModuleBuilder, type Value } from "../assembler";
import { emitArithmetic, type Operation, type Write } from "../emit/arithmetic";
import { emitDefinition, emitFunction } from "../emit/functions";
import { LANES } from "../emit/lanes";
import type { Execution, KernelSource, Target } from "../kernel";
import { type Float, floatOf, pairsOf, vectorOf } from "./float";
import { largestOf } from "./reduce/largest";
import { rowsOfChunk, sumsOfColumns, sumsOfRow } from "./reduce/sum";
import { walkBlocks } from "./row";

type Vector = Value<"v128">;
type Pointer = Local<"i32">;
/** Elements in the dtype are a vector, in float64 as many as they take; a number of the row is one vector, the same in all lanes. */
type Vectors = readonly Local<"v128">[];

/** Vectors of columns that are added up together: a line of the cache. */
const COLUMNS = 4;

/** Where a row's slices are in memory. */
interface Places {
  readonly inputs: readonly Pointer[];
  readonly outputs: readonly Pointer[];
  readonly scalars: readonly Value<"f64">[];
  readonly length: Pointer;
  readonly label?: Pointer;
}

/** Writes code for one row inside one function. */
class RowWriter {
  readonly #float: Float;
  readonly #numbers = new Map<number, Vectors>();
  readonly #operations = new Map<string, Operation>();
  readonly #kept: ReadonlyMap<number, number>;
  readonly #isKept = new Set<number>();

  constructor(
    private readonly module: ModuleBuilder,
    private readonly f: FunctionBuilder,
    private readonly program: RowProgram,
    private readonly dtype: ComputeDType,
    private readonly target: Target,
    private readonly places: Places,
  ) {
    this.#float = floatOf(dtype);
    this.#kept = keptWeights(program);
  }

  /** Computes the numbers of the row that some nodes need. */
  numbers(roots: readonly number[]): void {
    for (const n of neededFor(this.program.nodes, roots)) {
      if (!this.program.nodes[n]!.each) this.#numbers.set(n, this.#number(n));
    }
  }

  number(n: number): Local<"v128"> {
    return this.#numbers.get(n)![0]!;
  }

  /** Writes elements of a node, or a number of the row, to an output. */
  write(node: number, output: Pointer): void {
    const sources = this.#sources(node);
    const pointers = [output, ...sources.map((n) => this.#place(n))];
    walkBlocks(this.f, this.#float, pointers, this.places.length, 2, (steps, to, ...cursors) => {
      for (const step of steps) {
        const load = (n: number) => step.load(cursors[sources.indexOf(n)]!);
        step.store(to!, this.element(node, load)[0]!);
      }
    });
  }

  /** A node's elements. Reads inputs and what is kept by `load`. */
  element(target: number, load: (n: number) => Local<"v128">): Vectors {
    const values = new Map<number, Vectors>();
    const visit = (n: number): Vectors => {
      const { op, args, each, wide } = this.program.nodes[n]!;
      if (!each) return this.#numbers.get(n)!;
      let value = values.get(n);
      if (value === undefined) {
        value = op === "input" || this.#isKept.has(n) ? [load(n)] : this.#operation(op, wide, args.map(visit));
        values.set(n, value);
      }
      return value;
    };
    return visit(target);
  }

  #number(n: number): Vectors {
    const { f, places, dtype } = this;
    const { op, args, value, wide } = this.program.nodes[n]!;
    const of = (vector: Vector) => [f.local("v128", vector)];
    const splat = (number: Value<"f64">) => of(f64x2.splat(number));
    switch (op) {
      case "input":
        return of(this.#float.vector.loadSplat(places.inputs[value]!));
      case "scalar":
        return splat(places.scalars[value]!);
      case "count":
        return splat(f64.convertI32U(places.length));
      case "constant":
        return [f.constant(LANES[wide ? "f64" : dtype].constant(value))];
      case "largest":
        return of(this.#largest(args[0]!));
      case "sum":
        return splat(this.#sum(args[0]!));
      case "atLabel": {
        const offset = f.local("i32", i32.mul(places.label!, this.#float.bytes));
        const load = (input: number) =>
          f.local("v128", this.#float.vector.loadSplat(i32.add(this.#place(input), offset)));
        return this.element(args[0]!, load);
      }
      default:
        return this.#operation(
          op,
          wide,
          args.map((arg) => this.#numbers.get(arg)!),
        );
    }
  }

  #operation(op: string, wide: boolean, operands: readonly Vectors[]): Vectors {
    const { f } = this;
    const keep = (vectors: readonly Vector[]) => vectors.map((vector) => f.local("v128", vector));
    const [first] = operands as [Vectors];
    const isNumber = operands.every((operand) => [...this.#numbers.values()].includes(operand));
    if (this.dtype === "f64" && (op === "widen" || op === "narrow")) return first;
    if (op === "widen")
      return isNumber ? keep([f64x2.promoteLowF32x4(first[0]!)]) : keep(pairsOf(this.#float, first[0]!));
    if (op === "narrow" && !isNumber) return keep([vectorOf(this.#float, first)]);
    if (op === "narrow") return keep([vectorOf(this.#float, [first[0]!, first[0]!])]);
    const count = Math.max(...operands.map((operand) => operand.length));
    const write = this.#writer(op as Op, wide ? "f64" : this.dtype);
    return keep(
      Array.from({ length: count }, (_, k) => write(...operands.map((operand) => operand[k] ?? operand[0]!))),
    );
  }

  #writer(op: Op | "weight", dtype: ComputeDType): Operation {
    const { module, target } = this;
    const key = `${op} ${dtype}`;
    let operation = this.#operations.get(key);
    if (operation === undefined) {
      const isHost = this.dtype === "f64";
      const write: Write =
        op === "weight" || op === "log"
          ? isHost
            ? emitFunction(module, op === "log" ? op : "exp", "f64", target)
            : emitDefinition(module, op, target)
          : emitArithmetic(module, op as RuleOp, dtype, target);
      operation = write(this.f);
      this.#operations.set(key, operation);
    }
    return operation;
  }

  /** Where the elements of an input lie, or those that are kept of a weight. */
  #place(n: number): Pointer {
    const { inputs, outputs } = this.places;
    return this.#isKept.has(n) ? outputs[this.#kept.get(n)!]! : inputs[this.program.nodes[n]!.value]!;
  }

  /** Those whose elements are read where a node's are computed. */
  #sources(node: number): number[] {
    const sources = new Set<number>();
    const find = (n: number) => {
      const { op, args, each } = this.program.nodes[n]!;
      if (!each) return;
      if (op === "input" || this.#isKept.has(n)) sources.add(n);
      else args.forEach(find);
    };
    find(node);
    return [...sources];
  }

  #largest(node: number): Vector {
    const sources = this.#sources(node);
    const pointers = sources.map((n) => this.#place(n));
    return largestOf(this.f, this.#float, pointers, this.places.length, (step, ...cursors) => {
      return this.element(node, (n) => step.load(cursors[sources.indexOf(n)]!))[0]!;
    });
  }

  /** Weights that are kept are stored on the way. */
  #sum(node: number): Value<"f64"> {
    const sources = this.#sources(node);
    const kept = partsOf(this.program, node).filter((n) => this.#kept.has(n) && !this.#isKept.has(n));
    const targets = kept.map((n) => this.places.outputs[this.#kept.get(n)!]!);
    const pointers = [...targets, ...sources.map((n) => this.#place(n))];
    const [sum] = sumsOfRow(this.f, this.#float, pointers, this.places.length, 1, (step, ...cursors) => {
      const known = new Map<number, Local<"v128">>();
      const load = (n: number) => known.get(n) ?? step.load(cursors[kept.length + sources.indexOf(n)]!);
      for (const [k, n] of kept.entries()) {
        const [weights] = this.element(n, load);
        step.store(cursors[k]!, weights!);
        known.set(n, weights!);
        this.#isKept.add(n);
      }
      const term = this.element(node, load);
      for (const n of kept) this.#isKept.delete(n);
      return [term];
    });
    for (const n of kept) this.#isKept.add(n);
    return sum!;
  }
}

/** Exports `rows(start, end, length, labels, ignoreIndex, ...slices, ...scalars)` and `columns(start, end, rows, length, chunk, ...slices)`. */
function emit({ program, dtype }: Spec<"rows">, target: Target): ModuleBuilder {
  const module = new ModuleBuilder(target);
  if (resultsOfRows(program).length > 0) emitRows(module, program, dtype, target);
  if (resultsOfColumns(program).length > 0) emitColumns(module, program, dtype, target);
  return module;
}

/** The function that it exports. */
export function emitRows(
  module: ModuleBuilder,
  program: RowProgram,
  dtype: ComputeDType,
  target: Target,
  name = "rows",
) {
  const float = floatOf(dtype);
  const slices = [...program.inputs, ...program.outputs];
  const types = [...slices.map(() => "i32" as const), ...program.scalars.map(() => "f64" as const)];
  return module.items(name, ["i32", "i32", "i32", ...types], (f, index, length, labels, ignoreIndex, ...rest) => {
    const item = f.local("i32", i32.mul(index, float.bytes));
    const row = f.local("i32", i32.mul(item, length as Pointer));
    const pointers = slices.map(({ kind }, k) => {
      const start = rest[k] as Pointer;
      return kind === "matrix" || kind === "number"
        ? f.local("i32", i32.add(start, kind === "matrix" ? row : item))
        : start;
    });
    const places = {
      inputs: pointers.slice(0, program.inputs.length),
      outputs: pointers.slice(program.inputs.length),
      scalars: rest.slice(slices.length) as Local<"f64">[],
      length: length as Pointer,
    };
    const outputs = resultsOfRows(program).map((output) => ({ ...output, to: places.outputs[output.slot]! }));
    const compute = (label?: Pointer) => {
      const writer = new RowWriter(module, f, program, dtype, target, { ...places, ...(label && { label }) });
      writer.numbers(rootsOf(outputs));
      for (const { kind, node, atLabel, to } of outputs) {
        if (kind === "number") f.do(float.lowest.store(to, writer.number(node)));
        else writer.write(node, to);
        if (atLabel !== undefined)
          f.do(float.lowest.store(i32.add(to, i32.mul(label!, float.bytes)), writer.number(atLabel)));
      }
    };
    if (!program.labels) return compute();
    const label = f.local("i32", i32.load(i32.add(labels as Pointer, i32.mul(index, 4))));
    const fill = (value: number) => {
      const filling = f.local("v128", LANES[dtype].constant(value));
      for (const { kind, to } of outputs) {
        if (kind === "number") f.do(float.lowest.store(to, filling));
        else walkBlocks(f, float, [to], places.length, 1, ([step], cursor) => step!.store(cursor, filling));
      }
    };
    f.if(
      i32.eq(label, ignoreIndex as Pointer),
      () => fill(0),
      () =>
        f.if(
          i32.geU(label, places.length),
          () => fill(Number.NaN),
          () => compute(label),
        ),
    );
  });
}

/** Items are vectors of columns; the last one may be short. */
function emitColumns(module: ModuleBuilder, program: RowProgram, dtype: ComputeDType, target: Target): void {
  const float = floatOf(dtype);
  const { bytes, lanes } = float;
  const columns = resultsOfColumns(program);
  const needed = neededFor(program.nodes, rootsOf(columns));
  const used = program.inputs.flatMap(({ kind }, slot) => {
    const node = needed.find((n) => program.nodes[n]!.op === "input" && program.nodes[n]!.value === slot);
    return node === undefined ? [] : [{ kind, slot, node }];
  });
  const inputs = program.inputs.length;
  const types = [...program.inputs, ...program.outputs].map(() => "i32" as const);
  const parameters = ["i32", "i32", "i32", "i32", "i32", ...types] as const;
  module.function({ parameters, export: "columns" }, (f, start, end, rows, length, chunk, ...slices) => {
    const first = f.local("i32", i32.mul(start, lanes));
    const last = f.least(i32.mul(end, lanes), length);
    const offset = f.local("i32", i32.mul(first, bytes));
    const stride = f.local("i32", i32.mul(length, bytes));
    const along = used.filter(({ kind }) => kind !== "number");
    const starts = [...along.map(({ slot }) => slot), ...columns.map(({ slot }) => inputs + slot)];
    const pointers = starts.map((k) => i32.add(slices[k]!, offset));
    walkBlocks(f, float, pointers, i32.sub(last, first), COLUMNS, (steps, ...cursors) => {
      const at = new Map(used.map(({ slot }) => [slot, f.local("i32", slices[slot]!)]));
      for (const [k, { slot }] of along.entries()) f.set(at.get(slot)!, cursors[k]!);
      const perStep = lanes / 2;
      const count = steps.length * columns.length * perStep;
      const totals = sumsOfColumns(f, rows, chunk, count, (add) => {
        const places = {
          inputs: program.inputs.map((_, slot) => at.get(slot) ?? length),
          outputs: [],
          scalars: [],
          length,
        };
        const writer = new RowWriter(module, f, program, dtype, target, places);
        writer.numbers(rootsOf(columns));
        for (const [s, step] of steps.entries()) {
          const loaded = new Map<number, Local<"v128">>();
          const load = (n: number) => {
            const vector = loaded.get(n) ?? step.load(at.get(program.nodes[n]!.value)!);
            loaded.set(n, vector);
            return vector;
          };
          for (const [k, { term }] of columns.entries()) {
            const first = (s * columns.length + k) * perStep;
            for (const [half, part] of writer.element(term, load).entries()) add(first + half, part);
          }
        }
        for (const { kind, slot } of used) {
          if (kind !== "vector") f.increase(at.get(slot)!, kind === "matrix" ? stride : bytes);
        }
      });
      for (const step of steps) {
        for (const to of cursors.slice(along.length)) step.store(to, vectorOf(float, totals.splice(0, perStep)));
      }
    });
  });
}

export const rows: KernelSource<"rows"> = {
  emit,
  launch(launch: Launch<"rows">, execution: Execution) {
    const { kernel, inputs, labels, outputs, scalars, rows, length, ignoreIndex } = launch;
    const { program, dtype } = kernel.spec;
    const work = rows * length * 4;
    const slices = [...inputs, ...outputs];
    if (program.outputs.some(({ kind }) => kind !== "columns"))
      execution.run("rows", { range: rows, work }, length, labels ?? 0, ignoreIndex, ...slices, ...scalars);
    if (program.outputs.some(({ kind }) => kind === "columns")) {
      const split = { range: Math.ceil(length / floatOf(dtype).lanes), grain: COLUMNS, work };
      execution.run("columns", split, rows, length, rowsOfChunk(length), ...slices);
    }
  },
};
