/** Kernels over the rows of a matrix: the loop over rows, walks along a row in vectors, sums in float64 on the way. */
import type { ComputeDType } from "@opt/core/backend";
import {
  type FunctionBuilder,
  f32x4,
  f64,
  f64x2,
  i32,
  type Local,
  ModuleBuilder,
  type Operand,
  shuffle32,
  type Value,
  v128,
} from "../assembler";
import type { Target } from "../kernel";
import { narrow } from "./block";
import { type Float, floatOf } from "./float";

type Vector = Value<"v128">;

type Pointers = readonly Value<"i32">[];
type Cursors<P extends Pointers> = { readonly [I in keyof P]: Local<"i32"> };

/** One step of a walk: a vector, or at the end of the row a single element in all lanes. */
export interface Step {
  load(pointer: Local<"i32">): Local<"v128">;
  store(pointer: Local<"i32">, value: Vector): void;
  /** What sums may count: the single element once. */
  counted(value: Vector): Vector;
}

/**
 * Writes `body` for so many vectors at a time, for the vectors and for the elements left over. Starts at `pointers`; within the body they are
 * cursors.
 */
export function walkBlocks<const P extends Pointers>(
  f: FunctionBuilder,
  { lanes, bytes, vector, lowest }: Float,
  pointers: P,
  length: Operand<"i32">,
  unroll: number,
  body: (steps: readonly Step[], ...cursors: Cursors<P>) => void,
): void {
  const cursors = pointers.map((pointer) => f.local("i32", pointer)) as Cursors<P>;
  const left = f.local("i32", length);
  const loop = (elements: number, ...steps: readonly Step[]) =>
    f.walk(
      left,
      elements,
      cursors.map((cursor) => [cursor, elements * bytes]),
      () => body(steps, ...cursors),
    );
  const whole = (offset: number): Step => ({
    load: (pointer) => f.local("v128", v128.load(pointer, offset)),
    store: (pointer, value) => f.do(v128.store(pointer, value, offset)),
    counted: (value) => value,
  });
  loop(unroll * lanes, ...Array.from({ length: unroll }, (_, i) => whole(16 * i)));
  loop(lanes, whole(0));
  loop(1, {
    load: (pointer) => f.local("v128", vector.loadSplat(pointer)),
    store: (pointer, value) => f.do(lowest.store(pointer, value)),
    counted: (value) => v128.and(value, lowest.mask),
  });
}

/** The same a vector at a time; loops have two of them. */
export function walkRow<const P extends Pointers>(
  f: FunctionBuilder,
  float: Float,
  pointers: P,
  length: Operand<"i32">,
  body: (step: Step, ...cursors: Cursors<P>) => void,
): void {
  walkBlocks(f, float, pointers, length, 2, (steps, ...cursors) => {
    for (const step of steps) body(step, ...cursors);
  });
}

/** A sum in float64 of vectors of f32 or f64. */
export class WideSum {
  readonly #lanes: Local<"v128">[];

  /** Set to 0 here. */
  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
  ) {
    const zero = f64x2.splat(f64.const(0));
    this.#lanes = Array.from({ length: float.type === "f32" ? 2 : 1 }, () => f.local("v128", zero));
  }

  add(value: Vector): void {
    const { f, float } = this;
    const x = f.local("v128", value);
    const halves = float.type === "f32" ? [x, shuffle32(x, x, [2, 3, 2, 3])].map(f64x2.promoteLowF32x4) : [x];
    halves.forEach((half, i) => {
      f.set(this.#lanes[i]!, f64x2.add(this.#lanes[i]!, half));
    });
  }

  /** The sums of the single lanes, in the dtype. */
  lanes(): Value<"v128"> {
    if (this.float.type === "f64") return this.#lanes[0]!;
    const [low, high] = this.#lanes.map((lanes) => f32x4.demoteF64x2Zero(lanes)) as [Vector, Vector];
    return shuffle32(low, high, [0, 1, 4, 5]);
  }

  /** The sum of all lanes. */
  total(): Local<"f64"> {
    const sum = this.f.local("v128", (this.#lanes as Vector[]).reduce(f64x2.add));
    return this.f.local("f64", f64.add(f64x2.extractLane(sum, 0), f64x2.extractLane(sum, 1)));
  }
}

/** What a kernel is told of the row that it writes code for. */
export class Row {
  constructor(
    readonly module: ModuleBuilder,
    readonly f: FunctionBuilder,
    readonly float: Float,
    readonly index: Local<"i32">,
    readonly length: Local<"i32">,
  ) {}

  /** `walkRow` along this one. */
  walk<const P extends Pointers>(pointers: P, body: (step: Step, ...cursors: Cursors<P>) => void): void {
    walkRow(this.f, this.float, pointers, this.length, body);
  }

  /** The sum of a term of each place. */
  sum<const P extends Pointers>(pointers: P, term: (step: Step, ...cursors: Cursors<P>) => Vector): Local<"f64"> {
    const sum = new WideSum(this.f, this.float);
    this.walk(pointers, (step, ...cursors) => sum.add(step.counted(term(step, ...cursors))));
    return sum.total();
  }

  /** A float64 number in all lanes. */
  splat(value: Value<"f64">): Local<"v128"> {
    return this.f.local("v128", this.float.vector.splat(narrow(this.float, value)));
  }
}

interface OperandTypes {
  /** A matrix: the kernel gets the address of the row. */
  readonly row: "i32";
  /** An element for each row: its address. */
  readonly item: "i32";
  readonly i32: "i32";
  readonly f64: "f64";
}

type Operands<P extends readonly (keyof OperandTypes)[]> = { readonly [I in keyof P]: Local<OperandTypes[P[I]]> };

/** A module with the export `rows(start, end, length, ...operands)`, which does `body` for each row. */
export function emitRows<const P extends readonly (keyof OperandTypes)[]>(
  dtype: ComputeDType,
  target: Target,
  operands: P,
  body: (row: Row, ...operands: Operands<P>) => void,
): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const types = operands.map((operand) => (operand === "f64" ? operand : "i32"));
  module.items("rows", ["i32", ...types], (f, index, length, ...parameters) => {
    const item = f.local("i32", i32.mul(index, float.bytes));
    const places = { item, row: f.local("i32", i32.mul(item, length as Local<"i32">)) };
    const found = parameters.map((parameter, i) => {
      const place = places[operands[i] as "row"];
      return place ? f.local("i32", i32.add(parameter as Local<"i32">, place)) : parameter;
    });
    body(new Row(module, f, float, index, length as Local<"i32">), ...(found as unknown as Operands<P>));
  });
  return module;
}
