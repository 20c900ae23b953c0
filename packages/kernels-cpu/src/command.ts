/** Writes launches as native code reads them (native/cpu/src/kernels/command.h): float64 numbers in a row at a fixed address. */
import { byteSize, type DType, type Slice } from "@opt/core/backend";
import type { Addon } from "./addon";
import { bug, type CpuMemory, cpuMemory } from "./memory";

/** What was written for a list, and the memory whose addresses are in it. */
interface Passage {
  readonly numbers: Float64Array;
  readonly memories: readonly CpuMemory[];
}

export class CommandWriter {
  private numbers: Float64Array;
  private length = 0;
  private place: number;
  private readonly passages = new WeakMap<object, Passage>();
  /** Gathers the memory of a passage while that is written. */
  private memories: CpuMemory[] | null = null;

  constructor(private readonly addon: Addon) {
    this.numbers = new Float64Array(4096);
    this.place = addon.address(this.numbers);
  }

  /** Where the command lies, once it is written. */
  get address(): number {
    return this.place;
  }

  begin(opcode: number, threads: number): void {
    this.length = 0;
    this.number(opcode);
    this.number(threads);
  }

  number(value: number): void {
    if (this.length === this.numbers.length) this.grow();
    this.numbers[this.length++] = value;
  }

  flag(value: boolean): void {
    this.number(value ? 1 : 0);
  }

  list(values: readonly number[]): void {
    for (let i = 0; i < values.length; i++) this.number(values[i]!);
  }

  /**
   * The address of a slice's elements, of which the kernel touches the first `needed` and, in walks backwards, `before` earlier ones.
   *
   * @throws OptError DISPOSED if the memory is gone, DEVICE_MISMATCH, INTERNAL if the elements do not lie within it
   */
  slice({ memory, byteOffset, length }: Slice, dtype: DType, needed: number, before = 0): void {
    const size = byteSize(dtype);
    const known = cpuMemory(memory);
    const { bytes, address } = known;
    const inside = byteOffset >= before * size && byteOffset % size === 0 && byteOffset + length * size <= bytes;
    if (!inside || !(needed <= length)) {
      throw bug(
        `needs ${needed} ${dtype} elements, got ${length} from byte ${byteOffset} on in memory of ${bytes} bytes.`,
      );
    }
    this.number(address + byteOffset);
    this.memories?.push(known);
  }

  /**
   * What `write` writes about `list`, which must depend on it alone. The same list again, which nobody may change, is copied from the
   * first time; its memory is checked each time.
   */
  repeatable(list: object, write: () => void): void {
    const known = this.passages.get(list);
    if (known === undefined) {
      const start = this.length;
      const memories: CpuMemory[] = [];
      this.memories = memories;
      try {
        write();
      } finally {
        this.memories = null;
      }
      this.passages.set(list, { numbers: this.numbers.slice(start, this.length), memories });
      return;
    }
    const { numbers, memories } = known;
    for (let i = 0; i < memories.length; i++) memories[i]!.checkUsable();
    while (this.length + numbers.length > this.numbers.length) this.grow();
    this.numbers.set(numbers, this.length);
    this.length += numbers.length;
  }

  private grow(): void {
    const larger = new Float64Array(this.numbers.length * 2);
    larger.set(this.numbers);
    this.numbers = larger;
    this.place = this.addon.address(larger);
  }
}
