/** The memory that one rank writes and the others read: where in it there is room. */
import type { SharedFile } from "./shared-file";

/** Blocks begin at multiples of this: whole pages, which the kernel copies at once. */
const PAGE = 4096;

interface Block {
  readonly offset: number;
  readonly length: number;
}

export class Arena {
  /** In the order of their offsets. */
  readonly #used: Block[] = [];
  /** Whole pages that were written at least once. */
  #there = 0;

  /** @param capacity bytes that it never grows beyond */
  constructor(
    private readonly file: SharedFile,
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
    this.#there = Math.max(this.#there, offset + length);
    this.#used.splice(place, 0, { offset, length });
    return offset;
  }

  free(offset: number): void {
    const place = this.#used.findIndex((block) => block.offset === offset);
    if (place >= 0) this.#used.splice(place, 1);
  }

  #write(bytes: Uint8Array, offset: number): boolean {
    try {
      this.file.write(bytes, offset, offset + bytes.byteLength <= this.#there);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      this.capacity = offset; // the machine has no more
      return false;
    }
  }
}
