/** Device memory shared by tensors that view it, freed with the last of them. */
import type { Memory } from "../backend/memory";
import type { Device } from "../device/device";
import { activeRecorder } from "../device/recorder";

export class Storage {
  /** Counts the overwrites, through whichever view, for whoever relies on the contents: the tape, master copies. */
  version = 0;
  private owners = 1;

  constructor(
    readonly device: Device,
    readonly memory: Memory,
  ) {}

  static allocate(device: Device, bytes: number): Storage {
    const storage = new Storage(device, device.allocate(bytes));
    activeRecorder()?.overwrote(storage); // each replay writes it again
    return storage;
  }

  /** True if more than one tensor sees this memory. */
  get isShared(): boolean {
    return this.owners > 1;
  }

  /** False after its last tensor was disposed. */
  get isAlive(): boolean {
    return this.owners > 0;
  }

  /** Called by whatever writes into memory that a tensor may be seen in. */
  overwritten(): void {
    this.version++;
    activeRecorder()?.overwrote(this);
  }

  retain(): this {
    this.owners++;
    return this;
  }

  release(): void {
    if (--this.owners === 0) this.device.free(this.memory);
  }
}
