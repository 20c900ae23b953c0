/** Device memory shared by tensors that view it, freed with the last of them. */
import type { Memory } from "../backend/memory";
import type { Device } from "../device/device";

export class Storage {
  #owners = 1;
  #version = 0;
  /** Holds other contents for a while: master weights need not follow. */
  isLent = false;

  /** @param isBorrowed the memory is an array of the program */
  constructor(
    readonly device: Device,
    readonly memory: Memory,
    readonly isBorrowed = false,
  ) {}

  static allocate(device: Device, bytes: number): Storage {
    return new Storage(device, device.allocate(bytes));
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
    if (--this.#owners === 0) this.device.free(this.memory);
  }
}
