/** Writes launches as native code reads them (native/cpu/src/kernels/command.h): float64 numbers in a row at a fixed address. */
import { byteSize, type DType, type Slice } from "@opt/core/backend";
import type { Addon } from "./addon";
import { bug, cpuMemory } from "./memory";

export class CommandWriter {
  private numbers: Float64Array;
  private length = 0;
  private place: number;

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
    const { bytes, address } = cpuMemory(memory);
    const inside = byteOffset >= before * size && byteOffset % size === 0 && byteOffset + length * size <= bytes;
    if (!inside || !(needed <= length)) {
      throw bug(
        `needs ${needed} ${dtype} elements, got ${length} from byte ${byteOffset} on in memory of ${bytes} bytes.`,
      );
    }
    this.number(address + byteOffset);
  }

  private grow(): void {
    const larger = new Float64Array(this.numbers.length * 2);
    larger.set(this.numbers);
    this.numbers = larger;
    this.place = this.addon.address(larger);
  }
}
