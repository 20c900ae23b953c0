/** Device memory shared by tensors that view it, freed with the last of them. */
import type { Memory } from "./backend/memory";
import type { Device } from "./device";

export class Storage {
  private owners = 1;

  constructor(
    readonly device: Device,
    readonly memory: Memory,
  ) {}

  static allocate(device: Device, bytes: number): Storage {
    return new Storage(device, device.allocate(bytes));
  }

  /** True if more than one tensor sees this memory. */
  get isShared(): boolean {
    return this.owners > 1;
  }

  retain(): this {
    this.owners++;
    return this;
  }

  release(): void {
    if (--this.owners === 0) this.device.free(this.memory);
  }
}
