/**
 * The memory that one rank writes and the others read: a file that has no name any more, in the system's memory. Written and read by
 * `pwrite` and `pread`, which copy as fast as a mapping does, and say where there is no room in place of a bus error.
 */
import { readSync, writeSync } from "node:fs";

/** Blocks begin at multiples of this: whole pages, which the kernel copies at once. */
const PAGE = 4096;

interface Block {
  readonly offset: number;
  readonly length: number;
}

export class Arena {
  /** In the order of their offsets. */
  readonly #used: Block[] = [];

  /** @param capacity bytes that it never grows beyond */
  constructor(
    private readonly file: number,
    private capacity: number,
  ) {}

  get isEmpty(): boolean {
    return this.#used.length === 0;
  }

  /** Where `bytes` were written; undefined while there is no room. The lowest places come first: their pages are there already. */
  put(bytes: Uint8Array): number | undefined {
    const length = Math.ceil(bytes.byteLength / PAGE) * PAGE;
    let offset = 0;
    let place = 0;
    for (; place < this.#used.length; place++) {
      const next = this.#used[place]!;
      if (next.offset - offset >= length) break;
      offset = next.offset + next.length;
    }
    if (offset + length > this.capacity) return undefined;
    if (!this.#write(bytes, offset)) return undefined;
    this.#used.splice(place, 0, { offset, length });
    return offset;
  }

  free(offset: number): void {
    const place = this.#used.findIndex((block) => block.offset === offset);
    if (place >= 0) this.#used.splice(place, 1);
  }

  #write(bytes: Uint8Array, offset: number): boolean {
    try {
      for (let done = 0; done < bytes.byteLength; ) done += writeSync(this.file, bytes, done, undefined, offset + done);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      this.capacity = offset; // the machine has no more
      return false;
    }
  }
}

/** Reads what another rank wrote. */
export function readMemory(file: number, into: Uint8Array, offset: number): void {
  for (let done = 0; done < into.byteLength; ) {
    const count = readSync(file, into, done, into.byteLength - done, offset + done);
    if (count === 0) throw new Error(`the shared memory ends at ${offset + done}`);
    done += count;
  }
}
