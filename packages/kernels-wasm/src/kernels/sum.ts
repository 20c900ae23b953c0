/** Sums in float64 in the order of core's js/sum.ts: 16 lanes in eight vectors, a tree over them, chunks in order. */
import type { ComputeDType, StoredDType } from "@opt/core/backend";
import {
  type Callable,
  type FunctionBuilder,
  f32x4,
  f64,
  f64x2,
  i32,
  type Local,
  type ModuleBuilder,
  type Operand,
  shuffle32,
  type Value,
  v128,
} from "../assembler";
import { accessTo } from "../emit/stored";
import { type Float, floatOf } from "./float";

type Vector = Value<"v128">;
type Address = Operand<"i32">;

export const CHUNK = 32_768;
const PAIRS = 8;

/** The rows of a chunk where columns are added up, which are so many. */
export const rowsOfChunk = (columns: number) => Math.max(1, Math.floor(CHUNK / Math.min(columns, 64)));

/** How stored elements come as float64. */
export interface Reader {
  readonly bytes: number;
  four(address: Address, offset: number): [Vector, Vector];
  two(address: Address, offset: number): Vector;
  /** In the lower lane. */
  one(address: Address, offset: number): Vector;
}

/** The two (one, of f64) pairs of a vector in float64. */
export function pairsOf(float: Float, x: Local<"v128">): Vector[] {
  return float.type === "f32" ? [x, shuffle32(x, x, [2, 3, 2, 3])].map(f64x2.promoteLowF32x4) : [x];
}

export function readerOf(f: FunctionBuilder, dtype: ComputeDType, stored: StoredDType = "f32"): Reader {
  const { bytes, load, loadOne } = accessTo(f, dtype, stored);
  const one = (address: Address, offset: number) => {
    const element = loadOne(i32.add(address, offset));
    return dtype === "f32" ? f64x2.promoteLowF32x4(element) : element;
  };
  if (bytes === 2) {
    return {
      bytes,
      four: (address, offset) => pairsOf(floatOf("f32"), f.local("v128", load(address, offset))) as [Vector, Vector],
      two: (address, offset) => shuffle32(one(address, offset), one(address, offset + bytes), [0, 1, 4, 5]),
      one,
    };
  }
  const two = (address: Address, offset: number) =>
    dtype === "f32" ? f64x2.promoteLowF32x4(v128.load64Zero(address, offset)) : v128.load(address, offset);
  return { bytes, four: (address, offset) => [two(address, offset), two(address, offset + 2 * bytes)], two, one };
}

/** The sums of each of `count` terms over the elements from `pointers` on. */
export function sumTerms(
  f: FunctionBuilder,
  { bytes, four, two, one }: Reader,
  pointers: readonly Operand<"i32">[],
  length: Operand<"i32">,
  count: number,
  terms: (...elements: Local<"v128">[]) => readonly Vector[],
): Local<"f64">[] {
  const cursors = pointers.map((pointer) => f.local("i32", pointer));
  const left = f.local("i32", length);
  const sums = Array.from({ length: count }, () => ({
    total: f.local("f64", 0),
    lanes: Array.from({ length: PAIRS }, () => f.local("v128")),
  }));
  const add = (pair: number, elements: readonly Vector[], counted = (term: Vector) => term) => {
    terms(...elements.map((element) => f.local("v128", element))).forEach((term, k) => {
      const lanes = sums[k]!.lanes[pair]!;
      f.set(lanes, f64x2.add(lanes, counted(term)));
    });
  };
  const addRest = (rest: Local<"i32">, pair: number) => {
    const offset = 2 * pair * bytes;
    const last = () => {
      f.if(i32.ne(rest, 2 * pair), () => {
        const elements = cursors.map((cursor) => one(cursor, offset));
        add(pair, elements, (term) => v128.and(term, floatOf("f64").lowest.mask));
      });
    };
    if (pair === PAIRS - 1) return last();
    const both = () => {
      add(
        pair,
        cursors.map((cursor) => two(cursor, offset)),
      );
      addRest(rest, pair + 1);
    };
    f.if(i32.geU(rest, 2 * pair + 2), both, last);
  };
  f.while(left, () => {
    const rest = f.least(left, CHUNK);
    f.decrease(left, rest);
    for (const lanes of sums.flatMap((sum) => sum.lanes)) f.set(lanes, f64x2.splat(f64.const(0)));
    const steps = cursors.map((cursor) => [cursor, 2 * PAIRS * bytes] as const);
    f.walk(rest, 2 * PAIRS, steps, () => {
      for (let pair = 0; pair < PAIRS; pair += 2) {
        const fours = cursors.map((cursor) => four(cursor, 2 * pair * bytes));
        for (const half of [0, 1] as const) {
          add(
            pair + half,
            fours.map((pairs) => pairs[half]),
          );
        }
      }
    });
    f.if(rest, () => addRest(rest, 0));
    for (const { total, lanes } of sums) {
      addLanes(f, total, lanes);
    }
  });
  return sums.map(({ total }) => total);
}

/** Adds the lanes of a chunk to the total, as a tree. */
export function addLanes(f: FunctionBuilder, total: Local<"f64">, lanes: readonly Local<"v128">[]): void {
  for (let half = PAIRS / 2; half >= 1; half /= 2) {
    for (let j = 0; j < half; j++) f.set(lanes[j]!, f64x2.add(lanes[j]!, lanes[j + half]!));
  }
  f.set(total, f64.add(total, f64.add(f64x2.extractLane(lanes[0]!, 0), f64x2.extractLane(lanes[0]!, 1))));
}

/** (address, length): the sum of `term` of the elements from `address` on. */
export function emitSum(
  module: ModuleBuilder,
  dtype: ComputeDType,
  term: (x: Local<"v128">) => Vector,
  stored?: StoredDType,
): Callable<readonly ["i32", "i32"], "f64"> {
  return module.function({ parameters: ["i32", "i32"], result: "f64" }, (f, address, length) => {
    return sumTerms(f, readerOf(f, dtype, stored), [address], length, 1, (x) => [term(x!)])[0]!;
  });
}

/** Writes `term` of the elements from `pointers` on to `target`, rounded to the dtype. */
export function writeTerms(
  f: FunctionBuilder,
  float: Float,
  pointers: readonly Operand<"i32">[],
  target: Operand<"i32">,
  length: Operand<"i32">,
  term: (...elements: Local<"v128">[]) => Vector,
): void {
  const { bytes, four, one } = readerOf(f, float.type);
  const cursors = [...pointers, target].map((pointer) => f.local("i32", pointer));
  const sources = cursors.slice(0, -1);
  const to = cursors.at(-1)!;
  const left = f.local("i32", length);
  const of = (elements: readonly Vector[]) => term(...elements.map((element) => f.local("v128", element)));
  const loop = (count: number, body: () => void) => {
    f.walk(
      left,
      count,
      cursors.map((cursor) => [cursor, count * bytes]),
      body,
    );
  };
  loop(4, () => {
    const fours = sources.map((cursor) => four(cursor, 0));
    const [low, high] = ([0, 1] as const).map((half) => of(fours.map((pairs) => pairs[half]))) as [Vector, Vector];
    if (float.type === "f32") f.do(v128.store(to, narrowPairs(low, high)));
    else {
      f.do(v128.store(to, low));
      f.do(v128.store(to, high, 16));
    }
  });
  loop(1, () => {
    const value = of(sources.map((cursor) => one(cursor, 0)));
    f.do(float.lowest.store(to, float.type === "f32" ? f32x4.demoteF64x2Zero(value) : value));
  });
}

/** Two pairs of float64 as a vector of f32. */
export function narrowPairs(low: Vector, high: Vector): Vector {
  return shuffle32(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]);
}
