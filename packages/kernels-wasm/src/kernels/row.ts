/** Walks along a row in vectors. */
import { type FunctionBuilder, i32, i32x4, type Local, type Operand, type Value, v128 } from "../assembler";
import type { Float } from "./float";

type Vector = Value<"v128">;

type Pointers = readonly Value<"i32">[];
type Cursors<P extends Pointers> = { readonly [I in keyof P]: Local<"i32"> };

/** One step of a walk: a vector, or at the end of the row a part of one. */
export interface Step {
  /** Zeros beyond the row. */
  load(pointer: Local<"i32">): Local<"v128">;
  store(pointer: Local<"i32">, value: Vector): void;
  /** Ones in the lanes of the row, zeros beyond it; none where all are. */
  readonly mask?: Local<"v128">;
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
): void {
  const { lanes, bytes } = float;
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
  });
  loop(unroll * lanes, ...Array.from({ length: unroll }, (_, i) => whole(16 * i)));
  if (unroll > 1) loop(lanes, whole(0));
  f.if(left, () => body([rest(f, float, left)], ...cursors));
}

/** The last `left` elements of a row, less than a vector. */
function rest(f: FunctionBuilder, { type, loadOne, lowest }: Float, left: Local<"i32">): Step {
  if (type === "f64") {
    return {
      load: (pointer) => f.local("v128", loadOne(pointer)),
      store: (pointer, value) => f.do(lowest.store(pointer, value)),
      mask: f.constant(lowest.mask),
    };
  }
  const [hasPair, hasThree] = [i32.geU(left, 2), i32.eq(left, 3)];
  return {
    load(pointer) {
      const value = f.local("v128");
      const pair = () => {
        f.set(value, v128.load64Zero(pointer));
        f.if(hasThree, () => f.set(value, v128.load32Lane(pointer, value, 2, 8)));
      };
      f.if(hasPair, pair, () => f.set(value, loadOne(pointer)));
      return value;
    },
    store(pointer, value) {
      const stored = f.local("v128", value);
      const pair = () => {
        f.do(v128.store64Lane(pointer, stored, 0));
        f.if(hasThree, () => f.do(v128.store32Lane(pointer, stored, 2, 8)));
      };
      f.if(hasPair, pair, () => f.do(lowest.store(pointer, stored)));
    },
    mask: f.local("v128", i32x4.gtS(i32x4.splat(left), f.constant(i32x4.const([0, 1, 2, 3])))),
  };
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
