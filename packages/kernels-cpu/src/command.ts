/** Writes launches as native code reads them (native/cpu/src/kernels/command.h): float64 numbers in a row at a fixed address. */
import { OptError } from "@opt/core";
import { byteSize, type DType, type Slice } from "@opt/core/backend";
import type { Addon } from "./addon";
import { CpuMemory } from "./memory";

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
   * @throws OptError DISPOSED if the memory is gone, INTERNAL if the slice does not lie within it
   */
  slice({ memory, byteOffset, length }: Slice, dtype: DType, needed: number, before = 0): void {
    const size = byteSize(dtype);
    if (!(memory instanceof CpuMemory) || !memory.isUsable) throw unusable(memory);
    const inside = byteOffset >= before * size && byteOffset % size === 0 && byteOffset + length * size <= memory.bytes;
    if (!inside || !(needed <= length)) {
      const problem = `needs ${needed} ${dtype} elements at byte ${byteOffset}, got a slice of ${length} in ${memory.bytes} bytes.`;
      throw new OptError("INTERNAL", "cpu", problem, "Please report this: it is a bug in Opt.");
    }
    this.number(memory.address + byteOffset);
  }

  private grow(): void {
    const larger = new Float64Array(this.numbers.length * 2);
    larger.set(this.numbers);
    this.numbers = larger;
    this.place = this.addon.address(larger);
  }
}

function unusable(memory: unknown): OptError {
  if (!(memory instanceof CpuMemory)) {
    return new OptError(
      "DEVICE_MISMATCH",
      "cpu",
      "memory must be the cpu device's own, got another's.",
      "Use .to(device).",
    );
  }
  const how = memory.freed
    ? "was freed"
    : "has another size than when it became a tensor: its buffer was transferred or resized";
  return new OptError("DISPOSED", "cpu", `the memory ${how}.`, "Keep arrays in place while tensors use them.");
}
