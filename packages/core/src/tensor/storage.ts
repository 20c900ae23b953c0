/** Device memory shared by tensors that view it, freed with the last of them. */
import type { Memory } from "../backend/memory";
import type { Device } from "../device/device";
import type { CopyOf } from "./copy-of";

export class Storage {
  #owners = 1;
  #version = 0;
  /** Null while it is evicted. */
  #memory: Memory | null;
  readonly #bytes: number;
  #refill: (() => void) | null = null;
  /** Holds other contents for a while: master weights need not follow. */
  isLent = false;

  /** @param isBorrowed the memory is an array of the program */
  constructor(
    readonly device: Device,
    memory: Memory,
    readonly isBorrowed = false,
  ) {
    this.#memory = memory;
    this.#bytes = memory.bytes;
  }

  static allocate(device: Device, bytes: number): Storage {
    return new Storage(device, device.allocate(bytes));
  }

  /** Evicted memory comes back before it is used. @throws what its refill throws */
  get memory(): Memory {
    if (this.#memory === null) this.#refill!();
    return this.#memory!;
  }

  /** True if it was evicted at least once: what a trace allocates for it holds the contents of before. */
  get isEvictable(): boolean {
    return this.#refill !== null;
  }

  get isEvicted(): boolean {
    return this.#memory === null;
  }

  /** Frees the memory until something uses it. `refill` is called first then: it must `reallocate` and write what was there. */
  evict(refill: (() => void) | null = this.#refill): void {
    this.#refill = refill;
    if (this.#memory !== null) this.device.free(this.#memory);
    this.#memory = null;
  }

  /** Memory with undefined contents, where it was evicted. */
  reallocate(): void {
    this.#memory ??= this.device.allocate(this.#bytes);
  }

  /** What was written since is what was there before. */
  rewind(version: number): void {
    this.#version = version;
  }

  /** True if more than one tensor sees this memory. */
  get isShared(): boolean {
    return this.#owners > 1;
  }

  /** False after its last tensor was disposed. */
  get isAlive(): boolean {
    return this.#owners > 0;
  }

  /** Counts overwrites, through whichever view: the tape and master weights rely on the contents. */
  get version(): number {
    return this.#version;
  }

  /** How often the tape took note of what was written. */
  recordedWrites = 0;
  /** What it was copied from, where PyTorch has a view: a write would be lost. */
  copyOf: CopyOf | null = null;
  #life: { isOver: boolean } | null = null;

  /** Tells of its end, and holds nothing of it. */
  get life(): { readonly isOver: boolean } {
    this.#life ??= { isOver: !this.isAlive };
    return this.#life;
  }

  /** Called by whatever writes into memory that a tensor may be seen in. */
  overwritten(): void {
    this.#version++;
    this.device.overwrote(this);
  }

  retain(): this {
    this.#owners++;
    return this;
  }

  release(): void {
    if (--this.#owners !== 0) return;
    if (this.#life !== null) this.#life.isOver = true;
    if (this.#memory !== null) this.device.free(this.#memory);
  }
}
