/** Walks along a row in vectors. */
import type { StoredDType } from "@opt/core/backend";
import {
  type FunctionBuilder,
  f64x2,
  i32,
  i32x4,
  type Local,
  type Operand,
  shuffle32,
  type Value,
  v128,
} from "../assembler";
import { type Access, accessTo } from "../emit/stored";
import { type Float, pairsOf } from "./float";

type Vector = Value<"v128">;

export type Pointers = readonly Value<"i32">[];
export type Cursors<P extends Pointers> = { readonly [I in keyof P]: Local<"i32"> };

/** One step of a walk: a vector, or at the end of the row a part of one. */
export interface Step {
  readonly elements: number;
  /** Zeros beyond the row. */
  load(pointer: Local<"i32">): Local<"v128">;
  /** The same in float64, two by two: as many pairs as are needed. */
  pairs(pointer: Local<"i32">): Local<"v128">[];
  store(pointer: Local<"i32">, value: Vector): void;
  /** Ones in the lanes of the row, zeros beyond it; none where all are. */
  readonly mask?: Local<"v128">;
}

export interface WalkOptions {
  /** How elements are stored. */
  readonly stored?: StoredDType | undefined;
  /** Writes `body` for each number of elements left over, so that loops within it need not branch. */
  readonly split?: boolean;
}

/**
 * Writes `body` for so many vectors at a time, for the vectors and for the elements left over. Starts at `pointers`; within the body they are
 * cursors.
 */
export function walkBlocks<const P extends Pointers>(
  f: FunctionBuilder,
  float: Float,
  pointers: P,
  length: Operand<"i32">,
  unroll: number,
  body: (steps: readonly Step[], ...cursors: Cursors<P>) => void,
  { stored, split }: WalkOptions = {},
): void {
  const access = accessTo(f, float.type, stored);
  const { lanes } = float;
  const cursors = pointers.map((pointer) => f.local("i32", pointer)) as Cursors<P>;
  const left = f.local("i32", length);
  const loop = (elements: number, ...steps: readonly Step[]) =>
    f.walk(
      left,
      elements,
      cursors.map((cursor) => [cursor, elements * access.bytes]),
      () => body(steps, ...cursors),
    );
  const steps = Array.from({ length: unroll }, (_, k) => whole(f, float, access, k * lanes * access.bytes));
  loop(unroll * lanes, ...steps);
  if (unroll > 1) loop(lanes, steps[0]!);
  const ends = Array.from({ length: lanes - 1 }, (_, k) => end(f, float, access, k + 1));
  f.if(left, () => {
    if (split) choose(f, left, ends, (step) => body([step], ...cursors));
    else body([anyEnd(f, float, left, ends)], ...cursors);
  });
}

/** A vector of elements. */
function whole(f: FunctionBuilder, float: Float, access: Access, offset: number): Step {
  const load = (pointer: Local<"i32">) => f.local("v128", access.load(pointer, offset));
  const pair = (pointer: Local<"i32">, at: number) => f64x2.promoteLowF32x4(v128.load64Zero(pointer, offset + at));
  return {
    elements: float.lanes,
    load,
    pairs: (pointer) =>
      (float.type === "f32" && access.bytes === 4
        ? [pair(pointer, 0), pair(pointer, 8)]
        : pairsOf(float, load(pointer))
      ).map((each) => f.local("v128", each)),
    store: (pointer, value) => f.do(access.store(pointer, value, offset)),
  };
}

/** The last elements of a row, so many, which are less than a vector. */
function end(f: FunctionBuilder, float: Float, { bytes, loadOne }: Access, count: number): Step {
  const load = (pointer: Local<"i32">) => {
    const further = (lane: number) => loadOne(i32.add(pointer, lane * bytes));
    if (count === 1) return f.local("v128", loadOne(pointer));
    const isWord = bytes === 4;
    const two = isWord ? v128.load64Zero(pointer) : shuffle32(loadOne(pointer), further(1), [0, 4, 0, 4]);
    return f.local("v128", count === 2 ? two : shuffle32(two, further(2), [0, 1, 4, 5]));
  };
  return {
    elements: count,
    load,
    pairs: (pointer) =>
      pairsOf(float, load(pointer))
        .slice(0, Math.ceil(count / 2))
        .map((pair) => f.local("v128", pair)),
    store(pointer, value) {
      const stored = f.local("v128", value);
      f.do(count === 1 ? float.lowest.store(pointer, stored) : v128.store64Lane(pointer, stored, 0));
      if (count === 3) f.do(v128.store32Lane(pointer, stored, 2, 8));
    },
    mask: f.constant(
      float.type === "f32" ? i32x4.const([0, 1, 2, 3].map((lane) => (lane < count ? -1 : 0))) : float.lowest.mask,
    ),
  };
}

/** The one of these ends that has as many elements as are left. */
function anyEnd(f: FunctionBuilder, float: Float, left: Local<"i32">, ends: readonly Step[]): Step {
  if (ends.length === 1) return ends[0]!;
  const load = (pointer: Local<"i32">) => {
    const value = f.local("v128");
    choose(f, left, ends, (step) => f.set(value, step.load(pointer)));
    return value;
  };
  return {
    elements: ends.length,
    load,
    pairs: (pointer) => pairsOf(float, load(pointer)).map((pair) => f.local("v128", pair)),
    store(pointer, value) {
      const stored = f.local("v128", value);
      choose(f, left, ends, (step) => step.store(pointer, stored));
    },
    mask: f.local("v128", i32x4.gtS(i32x4.splat(left), f.constant(i32x4.const([0, 1, 2, 3])))),
  };
}

function choose(
  f: FunctionBuilder,
  left: Local<"i32">,
  [step, ...others]: readonly Step[],
  use: (step: Step) => void,
): void {
  const here = () => use(step!);
  if (others.length === 0) here();
  else f.if(i32.eq(left, step!.elements), here, () => choose(f, left, others, use));
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
