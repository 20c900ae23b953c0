/** Packs a launch's arguments: 64 bits each, as every kernel of native/cuda/kernels takes them. */
import {
  byteSize,
  type DType,
  type FieldWriter,
  isPacked,
  type PackedDType,
  packedBytes,
  type Slice,
} from "@opt/core/backend";
import { bug } from "./gpu";
import { type Allocator, rangeAddress } from "./memory";

/** What the driver takes on every GPU. */
const MAX_BYTES = 4096;

export class ArgumentWriter implements FieldWriter {
  readonly bytes = new Uint8Array(MAX_BYTES);
  private readonly halves = new Uint32Array(this.bytes.buffer);
  private readonly numbers = new Float64Array(this.bytes.buffer);
  #words = 0;

  constructor(private readonly owner: Allocator) {}

  get length(): number {
    return this.#words * 8;
  }

  begin(): this {
    this.#words = 0;
    return this;
  }

  integer(value: number): this {
    const word = this.#next();
    writeInteger(this.halves, word, value);
    return this;
  }

  integers(values: readonly number[]): this {
    for (const value of values) this.integer(value);
    return this;
  }

  number(value: number): this {
    this.numbers[this.#next()] = value;
    return this;
  }

  flag(value: boolean): this {
    return this.integer(Number(value));
  }

  /** An array of fixed length in the kernel's signature. */
  padded(values: readonly number[], length: number): this {
    for (let i = 0; i < length; i++) this.integer(values[i] ?? 0);
    return this;
  }

  slice(slice: Slice, dtype: DType, needed: number, before = 0): this {
    return this.integer(sliceAddress(this.owner, slice, dtype, needed, before));
  }

  #next(): number {
    if (this.#words * 8 >= MAX_BYTES) throw bug(`a launch takes ${MAX_BYTES} bytes of arguments, got more.`);
    return this.#words++;
  }
}

/** Writes word `at` as a 64-bit integer. Exact for safe integers, negative ones included. */
export function writeInteger(halves: Uint32Array, at: number, value: number): void {
  halves[2 * at] = value;
  halves[2 * at + 1] = Math.floor(value / 2 ** 32);
}

/**
 * The address of a slice's elements, of which the kernel touches the first `needed` and, in walks backwards, `before` earlier ones.
 *
 * @throws OptError DISPOSED if the memory is gone, DEVICE_MISMATCH, INTERNAL if the elements do not lie within it
 */
export function sliceAddress(
  owner: Allocator,
  slice: Slice,
  dtype: DType | PackedDType,
  needed: number,
  before = 0,
): number {
  const { memory, byteOffset, length } = slice;
  const [size, bytes] = isPacked(dtype) ? [4, packedBytes(length, dtype)] : [byteSize(dtype), length * byteSize(dtype)];
  const address = rangeAddress(memory, owner, byteOffset, bytes);
  if (byteOffset % size !== 0 || byteOffset < before * size || !(needed <= length)) {
    throw bug(`needs ${needed} ${dtype} elements and ${before} before, got ${length} from byte ${byteOffset} on.`);
  }
  return address;
}
