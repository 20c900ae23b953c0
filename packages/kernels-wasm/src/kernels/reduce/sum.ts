/** Sums in float64 in the order of core's js/sum.ts: 16 lanes in eight vectors, a tree over them, chunks in order. */
import type { StoredDType } from "@opt/core/backend";
import {
  type FunctionBuilder,
  f64,
  f64x2,
  type Local,
  type Operand,
  shuffle32,
  type Value,
  v128,
} from "../../assembler";
import { accessTo } from "../../emit/stored";
import type { Float } from "../float";
import { type Cursors, type Pointers, type Step, walkBlocks } from "../row";

type Vector = Value<"v128">;

export const CHUNK = 32_768;
const PAIRS = 8;

/** The rows of a chunk where columns are added up, which are so many. */
export const rowsOfChunk = (columns: number) => Math.max(1, Math.floor(CHUNK / Math.min(columns, 64)));

/**
 * The sums along a row of each of `count` terms, which are the pairs of a step. What is left of a chunk goes to the first lanes, the others moving up: the tree
 * adds the same numbers then.
 */
export function sumsOfRow<const P extends Pointers>(
  f: FunctionBuilder,
  float: Float,
  pointers: P,
  length: Operand<"i32">,
  count: number,
  terms: (step: Step, ...cursors: Cursors<P>) => readonly (readonly Vector[])[],
  stored?: StoredDType,
): Local<"f64">[] {
  const perStep = float.lanes / 2;
  const { bytes } = accessTo(f, float.type, stored);
  const sums = Array.from({ length: count }, () => ({
    total: f.local("f64", 0),
    lanes: Array.from({ length: PAIRS }, () => f.local("v128")),
  }));
  const left = f.local("i32", length);
  const cursors = pointers.map((pointer) => f.local("i32", pointer)) as Cursors<P>;
  f.while(left, () => {
    const rest = f.least(left, CHUNK);
    f.decrease(left, rest);
    for (const lane of sums.flatMap(({ lanes }) => lanes)) f.set(lane, f.constant(f64x2.const([0, 0])));
    const add = (steps: readonly Step[], ...at: Cursors<P>) => {
      for (const [k, step] of steps.entries()) {
        for (const [s, term] of terms(step, ...at).entries()) {
          for (const [half, pair] of term.entries()) {
            const lane = sums[s]!.lanes[perStep * k + half]!;
            f.set(lane, f64x2.add(lane, step.mask ? v128.and(pair, maskOf(float, step.mask, half)) : pair));
          }
        }
      }
      const used = steps.length * perStep;
      if (used === PAIRS || steps[0]!.mask) return;
      for (const { lanes } of sums) {
        const first = lanes.slice(0, used).map((lane) => f.local("v128", lane));
        for (const [j, lane] of lanes.entries()) f.set(lane, lanes[j + used] ?? first[j + used - PAIRS]!);
      }
    };
    walkBlocks(f, float, cursors as unknown as P, rest, PAIRS / perStep, add, { stored });
    for (const cursor of cursors) f.increase(cursor, CHUNK * bytes);
    for (const { total, lanes } of sums) {
      for (let half = PAIRS / 2; half >= 1; half /= 2) {
        for (let j = 0; j < half; j++) f.set(lanes[j]!, f64x2.add(lanes[j]!, lanes[j + half]!));
      }
      f.set(total, f64.add(total, f64.add(f64x2.extractLane(lanes[0]!, 0), f64x2.extractLane(lanes[0]!, 1))));
    }
  });
  return sums.map(({ total }) => total);
}

/** Of a mask of a vector that of one of its pairs in float64. */
function maskOf({ type }: Float, mask: Local<"v128">, half: number): Vector {
  if (type === "f64") return mask;
  return shuffle32(mask, mask, half === 0 ? [0, 0, 1, 1] : [2, 2, 3, 3]);
}

/** Sums over rows of `count` pairs of columns: rows of a chunk in order, then chunks in order. `ofRow` adds those of a row and goes on to the next. */
export function sumsOfColumns(
  f: FunctionBuilder,
  rows: Operand<"i32">,
  chunk: Operand<"i32">,
  count: number,
  ofRow: (add: (k: number, pair: Vector) => void) => void,
): Local<"v128">[] {
  const zero = f.constant(f64x2.const([0, 0]));
  const sums = Array.from({ length: count }, () => f.local("v128"));
  const totals = sums.map(() => f.local("v128", zero));
  const left = f.local("i32", rows);
  f.while(left, () => {
    const rest = f.least(left, chunk);
    f.decrease(left, rest);
    for (const sum of sums) f.set(sum, zero);
    f.doWhile(() => {
      ofRow((k, pair) => f.set(sums[k]!, f64x2.add(sums[k]!, pair)));
      f.decrease(rest, 1);
    }, rest);
    for (const [k, total] of totals.entries()) f.set(total, f64x2.add(total, sums[k]!));
  });
  return totals;
}
