/** Walking along a row in vectors, and adding up in float64 on the way. */
import {
  type FunctionBuilder,
  f32x4,
  f64,
  f64x2,
  i32,
  type Local,
  type Operand,
  shuffle32,
  type Value,
  v128,
} from "../assembler";
import { narrow } from "./block";
import type { Float } from "./float";

type Vector = Value<"v128">;

/** One step of a walk: a vector, or at the end of the row a single element in all lanes. */
export interface Step {
  load(pointer: Local<"i32">): Local<"v128">;
  store(pointer: Local<"i32">, value: Vector): void;
  /** What sums may count: the single element once. */
  counted(value: Vector): Vector;
}

/** Writes `body` for vectors and for the elements left over. Starts at `pointers`; within the body they are cursors. */
export function walkRow(
  f: FunctionBuilder,
  float: Float,
  pointers: readonly Value<"i32">[],
  length: Operand<"i32">,
  body: (step: Step, ...cursors: Local<"i32">[]) => void,
): void {
  const { lanes, bytes, vector, lowest } = float;
  const cursors = pointers.map((pointer) => f.local("i32", pointer));
  const left = f.local("i32", length);
  const loop = (elements: number, step: Step) =>
    f.while(i32.geU(left, elements), () => {
      body(step, ...cursors);
      for (const cursor of cursors) f.increase(cursor, elements * bytes);
      f.decrease(left, elements);
    });
  loop(lanes, {
    load: (pointer) => f.local("v128", v128.load(pointer)),
    store: (pointer, value) => f.do(v128.store(pointer, value)),
    counted: (value) => value,
  });
  const single = lowest.mask;
  loop(1, {
    load: (pointer) => f.local("v128", vector.loadSplat(pointer)),
    store: (pointer, value) => f.do(lowest.store(pointer, value)),
    counted: (value) => v128.and(value, single),
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
    const all = this.#lanes.reduce<Vector>(
      (sum, lanes, i) => (i === 0 ? lanes : f64x2.add(sum, lanes)),
      this.#lanes[0]!,
    );
    const sum = this.f.local("v128", all);
    return this.f.local("f64", f64.add(f64x2.extractLane(sum, 0), f64x2.extractLane(sum, 1)));
  }
}

/** The largest element of a row in all lanes; NaN if there is one. */
export function rowMaximum(f: FunctionBuilder, float: Float, row: Value<"i32">, length: Operand<"i32">): Local<"v128"> {
  const { vector, scalar, lanes } = float;
  const largest = f.local("v128", vector.splat(scalar.const(Number.NEGATIVE_INFINITY)));
  walkRow(f, float, [row], length, ({ load }, at) => f.set(largest, vector.max(largest, load(at))));
  let max = vector.extractLane(largest, 0);
  for (let lane = 1; lane < lanes; lane++) max = scalar.max(max, vector.extractLane(largest, lane));
  return f.local("v128", vector.splat(max));
}

/** Calls `body` with the byte offset of each row. */
export function forRows(
  f: FunctionBuilder,
  float: Float,
  [start, end, length]: readonly [Local<"i32">, Local<"i32">, Local<"i32">],
  body: (offset: Local<"i32">, row: Local<"i32">) => void,
): void {
  const row = f.local("i32");
  const offset = f.local("i32");
  f.for(row, start, end, 1, () => {
    f.set(offset, i32.mul(i32.mul(row, length), float.bytes));
    body(offset, row);
  });
}

/** A float64 number in all lanes. */
export function splatOf(f: FunctionBuilder, float: Float, value: Value<"f64">): Local<"v128"> {
  return f.local("v128", float.vector.splat(narrow(float, value)));
}
