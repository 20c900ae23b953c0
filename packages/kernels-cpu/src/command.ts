/** Writes launches as native code reads them (native/cpu/src/kernels/command.h): contiguous float64 numbers at a fixed address. */
import {
  byteSize,
  type ComputeDType,
  type DType,
  isPacked,
  type Memory,
  type PackedDType,
  packedBytes,
  type Scalar,
  type Slice,
  type TypedArray,
  viewElements,
} from "@opt/core/backend";
import type { Addon } from "./addon";
import { bug, type CpuMemory, cpuMemory, ListedMemory } from "./memory";

/** What was written about a list for a kernel, and the memory whose addresses are in it. */
interface Passage {
  readonly kernel: object;
  readonly numbers: Float64Array;
  readonly memory: ListedMemory;
}

// Kept at the list itself, which most often lives for one step: a WeakMap would carry its entries on to the next full collection.
const PASSAGE = Symbol("passage");

/** A list that may come again: its passage from the second time on, null after the first. */
export interface Repeatable {
  [PASSAGE]?: Passage | null;
}

/** A scalar of a launch in a list: which of them it is, where its number stands in the command, and on which memory it is until then. */
interface ScalarPlace {
  readonly index: number;
  readonly at: number;
  readonly load?: { readonly slice: Slice; readonly dtype: ComputeDType };
}

export class CommandWriter {
  #numbers: Float64Array;
  #length = 0;
  /** In lists: the scalars of the command that is being written, which starts at `start`. */
  #scalars: ScalarPlace[] | null = null;
  #start = 0;
  #place: number;
  /** Gathers the memory of a passage while that is written. */
  #memories: CpuMemory[] | null = null;
  /** In lists: asked of each address, at its place. True if it is another one in each run: then nothing is written. */
  onAddress: ((at: number, memory: Memory, byteOffset: number) => boolean) | null = null;

  constructor(private readonly addon: Addon) {
    this.#numbers = new Float64Array(4096);
    this.#place = addon.address(this.#numbers);
  }

  /** Where the command lies, once it is written. */
  get address(): number {
    return this.#place;
  }

  begin(opcode: number, threads: number): void {
    this.#length = 0;
    this.number(opcode);
    this.number(threads);
  }

  /**
   * One more command of a list, which `write` writes: its length and how many of its scalars are read where they lie, the command, and
   * these scalars. Returns where each of its scalars stands in the list.
   */
  entry(opcode: number, threads: number, write: () => void): readonly number[] {
    const head = this.#length;
    this.list([0, 0]);
    this.#start = this.#length;
    const scalars: ScalarPlace[] = [];
    this.#scalars = scalars;
    try {
      this.list([opcode, threads]);
      write();
    } finally {
      this.#scalars = null;
    }
    this.#numbers[head] = this.#length - this.#start;
    for (const { at, load } of scalars) {
      if (load === undefined) continue;
      this.#numbers[head + 1]! += 1;
      this.list([at - this.#start, Number(load.dtype === "f64")]);
      const { memory, byteOffset } = load.slice;
      const isOpen = this.onAddress?.(this.#length, memory, byteOffset);
      this.number(isOpen ? 0 : cpuMemory(memory).address + byteOffset);
    }
    const places: number[] = [];
    for (const { index, at } of scalars) places[index] = at;
    return places;
  }

  /** Overwrites what stands there. */
  set(at: number, value: number): void {
    this.#numbers[at] = value;
  }

  /** Exact below 2^53. */
  integer(value: number): void {
    this.number(value);
  }

  number(value: number): void {
    if (this.#length === this.#numbers.length) this.#grow();
    this.#numbers[this.#length++] = value;
  }

  /** The number that one of a launch's scalars is now; in lists, what it is when the list is run. They are written in any order. */
  scalar(scalars: readonly Scalar[], index: number, dtype: ComputeDType): void {
    const scalar = scalars[index]!;
    if (typeof scalar === "number") {
      this.#scalars?.push({ index, at: this.#length });
      this.number(scalar);
      return;
    }
    if (this.#scalars !== null) {
      this.#scalars.push({ index, at: this.#length, load: { slice: scalar, dtype } });
      this.number(0);
      return;
    }
    const { buffer, byteOffset } = cpuMemory(scalar.memory).byteView(scalar.byteOffset, byteSize(dtype));
    this.number(viewElements(buffer, byteOffset, 1, dtype)[0]!);
  }

  flag(value: boolean): void {
    this.number(value ? 1 : 0);
  }

  list(values: readonly number[]): void {
    for (let i = 0; i < values.length; i++) this.number(values[i]!);
  }

  /** The address of JavaScript's own array. */
  array(elements: TypedArray): void {
    this.number(this.addon.address(elements));
  }

  /** The count of the numbers that `write` writes, and these. */
  counted<Source>(write: (to: CommandWriter, source: Source) => void, source: Source): void {
    const at = this.#length;
    this.number(0);
    write(this, source);
    this.#numbers[at] = this.#length - at - 1;
  }

  /**
   * The address of a slice's elements, of which the kernel touches the first `needed` and, in walks backwards, `before` earlier ones.
   *
   * @throws OptError DISPOSED if the memory is gone, DEVICE_MISMATCH, INTERNAL if the elements do not lie within it
   */
  slice({ memory, byteOffset, length }: Slice, dtype: DType | PackedDType, needed: number, before = 0): void {
    if (this.onAddress?.(this.#length, memory, byteOffset)) {
      this.number(0);
      return;
    }
    const size = isPacked(dtype) ? 4 : byteSize(dtype);
    const extent = isPacked(dtype) ? packedBytes(length, dtype) : length * size;
    const known = cpuMemory(memory);
    const { bytes, address } = known;
    const inside = byteOffset >= before * size && byteOffset % size === 0 && byteOffset + extent <= bytes;
    if (!inside || !(needed <= length)) {
      throw bug(
        `needs ${needed} ${dtype} elements, got ${length} from byte ${byteOffset} on in memory of ${bytes} bytes.`,
      );
    }
    this.number(address + byteOffset);
    this.#memories?.push(known);
  }

  /**
   * What `write` writes about `list` for `kernel`, on which it must depend alone (it is given them: a closure would be garbage of every
   * launch). A list that comes again, which nobody may change, is copied from what was written then; its memory is checked each time.
   */
  repeatable<List extends Repeatable, Kernel extends object>(
    list: List,
    kernel: Kernel,
    write: (to: CommandWriter, list: List, kernel: Kernel) => void,
  ): void {
    const known = list[PASSAGE];
    if (this.onAddress !== null) {
      write(this, list, kernel);
    } else if (known?.kernel === kernel) {
      this.#copy(known);
    } else if (known === undefined) {
      write(this, list, kernel);
      list[PASSAGE] = null;
    } else {
      list[PASSAGE] = this.#recorded(kernel, () => write(this, list, kernel));
    }
  }

  #copy({ numbers, memory }: Passage): void {
    memory.check();
    while (this.#length + numbers.length > this.#numbers.length) this.#grow();
    this.#numbers.set(numbers, this.#length);
    this.#length += numbers.length;
  }

  #recorded(kernel: object, write: () => void): Passage {
    const start = this.#length;
    const memories: CpuMemory[] = [];
    this.#memories = memories;
    try {
      write();
    } finally {
      this.#memories = null;
    }
    return { kernel, numbers: this.#numbers.slice(start, this.#length), memory: new ListedMemory(memories) };
  }

  #grow(): void {
    const larger = new Float64Array(this.#numbers.length * 2);
    larger.set(this.#numbers);
    this.#numbers = larger;
    this.#place = this.addon.address(larger);
  }
}
