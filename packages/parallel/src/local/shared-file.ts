/**
 * A file that has no name any more, in the system's memory, which ranks of this machine write and read: through a mapping where the default
 * device has one, which copies two or three times as fast, else by `pwrite` and `pread`.
 */
import { readSync, writeSync } from "node:fs";
import { hostIo } from "@opt/core";

/** What is mapped at once: small, because the garbage collector takes it for memory of this process. */
const SEGMENT = 32 << 20;

export class SharedFile {
  readonly #segments: (Uint8Array | undefined)[] = [];

  constructor(private readonly file: number) {}

  /** @param isThere it was written before: new pages are made by the call, which says where the system has no more. @throws ENOSPC */
  write(bytes: Uint8Array, offset: number, isThere: boolean): void {
    const place = isThere ? this.#mapped(offset, bytes.byteLength) : undefined;
    if (place) place.set(bytes);
    else
      for (let done = 0; done < bytes.byteLength; )
        done += writeSync(this.file, bytes, done, bytes.byteLength - done, offset + done);
  }

  /** Of bytes that were written. */
  read(into: Uint8Array, offset: number): void {
    const place = this.#mapped(offset, into.byteLength);
    if (place) into.set(place);
    else
      for (let done = 0; done < into.byteLength; ) {
        const count = readSync(this.file, into, done, into.byteLength - done, offset + done);
        if (count === 0) throw new Error(`the shared memory ends at ${offset + done}`);
        done += count;
      }
  }

  /** Undefined where it reaches into two segments, too. */
  #mapped(offset: number, length: number): Uint8Array | undefined {
    const number = Math.floor(offset / SEGMENT);
    const begin = offset - number * SEGMENT;
    if (begin + length > SEGMENT) return undefined;
    this.#segments[number] ??= hostIo().map?.(this.file, number * SEGMENT, SEGMENT);
    return this.#segments[number]?.subarray(begin, begin + length);
  }
}
