/** The largest element of a row, or of columns: a NaN if there is one, -infinity of nothing. A zero is +0, as zeros are met in any order. */
import { type FunctionBuilder, f64x2, type Local, type Operand, shuffle32, type Value, v128 } from "../../assembler";
import { LANES } from "../../emit/lanes";
import type { Float } from "../float";
import { type Cursors, type Pointers, type Step, walkBlocks } from "../row";

type Vector = Value<"v128">;

const UNROLL = 4;

/** Collects the largest of each lane. A NaN does not win there: it is looked for. */
export class LargestLanes {
  readonly #least: Local<"v128">;
  readonly #nan: Local<"v128">;
  readonly #zero: Local<"v128">;
  readonly #most: Local<"v128">;
  readonly #foundNaN: Local<"v128">;

  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
  ) {
    this.#least = f.constant(LANES[float.type].constant(Number.NEGATIVE_INFINITY));
    this.#nan = f.constant(LANES[float.type].constant(Number.NaN));
    this.#zero = f.constant(f64x2.const([0, 0]));
    this.#most = f.local("v128", this.#least);
    this.#foundNaN = f.local("v128", this.#zero);
  }

  add(x: Local<"v128">, mask?: Vector): void {
    this.#join(mask ? v128.bitselect(x, this.#least, mask) : x, this.float.vector.ne(x, x));
  }

  /** The largest of all lanes of this and another, in every lane. */
  ofAll(other: LargestLanes): Local<"v128"> {
    this.#join(other.#most, other.#foundNaN);
    const most = this.#most;
    const turned = (order: readonly number[]) =>
      this.f.set(most, this.float.vector.pmax(most, shuffle32(most, most, order)));
    turned([2, 3, 0, 1]);
    if (this.float.lanes === 4) turned([1, 0, 3, 2]);
    this.f.set(most, this.float.vector.add(most, this.#zero));
    this.f.if(v128.anyTrue(this.#foundNaN), () => this.f.set(most, this.#nan));
    return most;
  }

  /** The largest of each lane. */
  value(): Vector {
    return v128.bitselect(this.#nan, this.float.vector.add(this.#most, this.#zero), this.#foundNaN);
  }

  #join(x: Vector, nan: Vector): void {
    this.f.set(this.#foundNaN, v128.or(this.#foundNaN, nan));
    this.f.set(this.#most, this.float.vector.pmax(this.#most, x));
  }
}

/** The largest of a row, in all lanes. */
export function largestOf<const P extends Pointers>(
  f: FunctionBuilder,
  float: Float,
  pointers: P,
  length: Operand<"i32">,
  element: (step: Step, ...cursors: Cursors<P>) => Local<"v128">,
): Local<"v128"> {
  const [even, odd] = [new LargestLanes(f, float), new LargestLanes(f, float)];
  walkBlocks(f, float, pointers, length, UNROLL, (steps, ...cursors) => {
    for (const [k, step] of steps.entries()) (k % 2 === 0 ? even : odd).add(element(step, ...cursors), step.mask);
  });
  return even.ofAll(odd);
}
