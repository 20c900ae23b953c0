/** Device memory shared by tensors that view it, freed with the last of them. */
import type { Memory } from "../backend/memory";
import type { Device } from "../device/device";
import { activeRecorder } from "../device/recorder";
import { countOf, returnVersionNumber, takeVersionNumber, type Versioned } from "../device/versions";

export class Storage implements Versioned {
  #owners = 1;
  /** Overwrites that are not counted under its number. */
  #overwrites = 0;
  #number = -1;
  /** Holds other contents for a while: master copies need not follow. */
  isLent = false;

  /** @param isBorrowed the memory is an array of the program */
  constructor(
    readonly device: Device,
    readonly memory: Memory,
    readonly isBorrowed = false,
  ) {}

  static allocate(device: Device, bytes: number): Storage {
    const storage = new Storage(device, device.allocate(bytes));
    activeRecorder()?.overwrote(storage); // each replay writes it again
    return storage;
  }

  /** True if more than one tensor sees this memory. */
  get isShared(): boolean {
    return this.#owners > 1;
  }

  /** False after its last tensor was disposed. */
  get isAlive(): boolean {
    return this.#owners > 0;
  }

  /** Counts the overwrites, through whichever view, for whoever relies on the contents: the tape, master copies. */
  get version(): number {
    return this.#number < 0 ? this.#overwrites : this.#overwrites + countOf(this.#number);
  }

  get versionNumber(): number {
    if (this.#number < 0) {
      this.#number = takeVersionNumber();
      this.#overwrites -= countOf(this.#number); // what its last owner left there
    }
    return this.#number;
  }

  /** Called by whatever writes into memory that a tensor may be seen in. */
  overwritten(): void {
    this.#overwrites++;
    activeRecorder()?.overwrote(this);
  }

  retain(): this {
    this.#owners++;
    return this;
  }

  release(): void {
    if (--this.#owners > 0) return;
    if (this.#number >= 0) returnVersionNumber(this.#number);
    this.device.free(this.memory);
  }
}
