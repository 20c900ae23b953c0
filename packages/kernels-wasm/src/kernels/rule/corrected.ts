/** State in 24 bits in wasm: blocks of 16 bits of 256 elements, then a correction of 8 bits for each. Core's rule/corrected.ts says what they mean. */
import { packedHead } from "@opt/core/backend";
import { type Effect, type FunctionBuilder, i8x16, i32, i32x4, type Local, type Value, v128 } from "../../assembler";
import type { Access } from "../../emit/stored";

type Vector = Value<"v128">;
type Address = Value<"i32">;

const HEAD = packedHead("bf16x");

/** A buffer inside of a function. Its elements are addressed by their corrections. */
export class CorrectedBuffer implements Access {
  readonly bytes = 1;

  /** @param block the address of the block */
  constructor(
    private readonly f: FunctionBuilder,
    private readonly block: Local<"i32">,
  ) {}

  #all(word: number): Vector {
    return this.f.constant(i32x4.const([word, word, word, word]));
  }

  /** Where the 16 bits are. */
  #high(address: Address): Value<"i32"> {
    const place = i32.sub(i32.sub(address, this.block), HEAD);
    return i32.add(this.block, i32.shl(place, 1));
  }

  load(address: Address, offset: number): Vector {
    const high = i32x4.extendLowI16x8U(v128.load64Zero(this.#high(address), 2 * offset));
    // Each in the highest byte of its lane: the shift back brings its sign.
    const bytes = v128.load32Zero(address, offset);
    const raised = i8x16.shuffle(bytes, this.#all(0), [16, 16, 16, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 3]);
    return i32x4.add(i32x4.shl(high, 16), i32x4.shrS(raised, 16));
  }

  loadOne(address: Address): Vector {
    const high = i32.shl(i32.load16U(this.#high(address)), 16);
    return i32x4.splat(i32.add(high, i32.shrS(i32.shl(i32.load8U(address), 24), 16)));
  }

  /** The upper 24 bits, to nearest even; each NaN becomes the same one. */
  #upper(value: Vector): Local<"v128"> {
    const { f } = this;
    const bits = f.local("v128", value);
    const odd = v128.and(i32x4.shrU(bits, 8), this.#all(1));
    const rounded = i32x4.shrU(i32x4.add(bits, i32x4.add(odd, this.#all(0x7f))), 8);
    const isNumber = i32x4.gtS(this.#all(0x7f800001), v128.and(bits, this.#all(0x7fffffff)));
    return f.local("v128", v128.bitselect(rounded, this.#all(0x7fc000), isNumber));
  }

  store(address: Address, value: Vector, offset: number): Effect {
    const { f } = this;
    const upper = this.#upper(value);
    const high = f.local("v128", i32x4.shrU(i32x4.add(upper, this.#all(0x80)), 8));
    const halves = i8x16.shuffle(high, high, [0, 1, 4, 5, 8, 9, 12, 13, 0, 1, 4, 5, 8, 9, 12, 13]);
    f.do(v128.store64Lane(this.#high(address), halves, 0, 2 * offset));
    const bytes = i8x16.shuffle(upper, upper, [0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12]);
    return v128.store32Lane(address, bytes, 0, offset);
  }

  storeOne(address: Address, value: Vector): Effect {
    const { f } = this;
    const upper = f.local("i32", i32x4.extractLane(this.#upper(value), 0));
    f.do(i32.store16(this.#high(address), i32.shrU(i32.add(upper, 0x80), 8)));
    return i32.store8(address, upper);
  }
}
