import type { OptError } from "@opt/core";
import { corrupt } from "./errors";
import { latin1 } from "./latin1";
import { type ByteSource, readBytes } from "./source";

const READ_AHEAD = 256 * 1024;
const LINE_FEED = 0x0a;

/** Walks a source forwards through a buffer, by default of 256 KiB: parsers wait only where the buffer ends. */
export class ByteCursor {
  #buffer: Uint8Array = new Uint8Array(0);
  #view: DataView = new DataView(this.#buffer.buffer);
  /** Where the buffer begins in the source, and how far in it the cursor is. */
  #begin: number;
  #at = 0;
  #end = 0;

  constructor(
    readonly source: ByteSource,
    position = 0,
    private readonly ahead = READ_AHEAD,
  ) {
    this.#begin = position;
  }

  get position(): number {
    return this.#begin + this.#at;
  }

  get remaining(): number {
    return this.source.byteLength - this.position;
  }

  /** Whether `length` bytes can be taken without waiting. */
  has(length: number): boolean {
    return this.#at + length <= this.#end;
  }

  /** Makes `length` bytes takeable. @throws OptError CORRUPT if the source ends before them */
  async need(length: number): Promise<void> {
    if (this.has(length)) return;
    if (length > this.remaining) throw this.corrupt(`${length} more bytes are needed, got ${this.remaining}`);
    const { position } = this;
    const bytes = await readBytes(this.source, position, Math.min(Math.max(length, this.ahead), this.remaining));
    this.#begin = position;
    this.#at = 0;
    this.#buffer = bytes;
    this.#end = bytes.length;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Steps over `length` bytes without reading them. @throws OptError CORRUPT if the source ends before */
  skip(length: number): void {
    if (!Number.isSafeInteger(length) || length < 0 || length > this.remaining) {
      throw this.corrupt(`${length} bytes are to be skipped, got ${this.remaining}`);
    }
    this.#at += length;
  }

  /** Steps back to a position since the last `need`. */
  back(position: number): void {
    this.#at = position - this.#begin;
  }

  /** The next bytes, which `need` made takeable; a view, valid until the next `need`. */
  take(length: number): Uint8Array {
    const start = this.#advance(length);
    return this.#buffer.subarray(start, start + length);
  }

  /** The byte so far ahead; undefined where `need` has not made it takeable. */
  byteAhead(distance: number): number | undefined {
    return this.#buffer[this.#at + distance];
  }

  /** The bytes up to the next line feed, as Latin-1. @throws OptError CORRUPT for more than `most` */
  line(most: number): string {
    let length = 0;
    while (length <= most && this.byteAhead(length) !== LINE_FEED) length++;
    if (length > most) throw this.corrupt("a line does not end");
    const line = latin1(this.take(length));
    this.#advance(1);
    return line;
  }

  uint8(): number {
    return this.#buffer[this.#advance(1)]!;
  }

  uint16(): number {
    return this.#view.getUint16(this.#advance(2), true);
  }

  int32(): number {
    return this.#view.getInt32(this.#advance(4), true);
  }

  uint32(): number {
    return this.#view.getUint32(this.#advance(4), true);
  }

  float64BigEndian(): number {
    return this.#view.getFloat64(this.#advance(8), false);
  }

  /** An unsigned 64-bit length. @throws OptError CORRUPT above 2^53 - 1 */
  length64(): number {
    const value = this.#view.getBigUint64(this.#advance(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.corrupt(`a length of ${value} bytes is named`);
    return Number(value);
  }

  corrupt(problem: string): OptError {
    const advice = "The file is cut short or damaged: use an intact copy.";
    return corrupt(this.source.path, `${problem} at byte ${this.position}`, advice);
  }

  #advance(length: number): number {
    const start = this.#at;
    if (start + length > this.#end) throw this.corrupt(`${length} more bytes are needed`);
    this.#at = start + length;
    return start;
  }
}
