import type { OptError } from "@opt/core";
import { corrupt } from "./errors";
import { type ByteSource, readBytes } from "./source";

const READ_AHEAD = 256 * 1024;

/** Walks a source forwards through a buffer, by default of 256 KiB: parsers wait only where the buffer ends. */
export class ByteCursor {
  #buffer: Uint8Array = new Uint8Array(0);
  #view = new DataView(this.#buffer.buffer);
  #bufferStart = 0;
  #position: number;

  constructor(
    readonly source: ByteSource,
    position = 0,
    private readonly ahead = READ_AHEAD,
  ) {
    this.#position = position;
  }

  get position(): number {
    return this.#position;
  }

  get remaining(): number {
    return this.source.byteLength - this.#position;
  }

  /** Whether `length` bytes can be taken without waiting. */
  has(length: number): boolean {
    return this.#position - this.#bufferStart + length <= this.#buffer.byteLength;
  }

  /** Makes `length` bytes takeable. @throws OptError CORRUPT if the source ends before them */
  async need(length: number): Promise<void> {
    if (this.has(length)) return;
    if (length > this.remaining) throw this.corrupt(`${length} more bytes are needed, got ${this.remaining}`);
    const bytes = await readBytes(this.source, this.#position, Math.min(Math.max(length, this.ahead), this.remaining));
    this.#buffer = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#bufferStart = this.#position;
  }

  /** Steps over `length` bytes without reading them. @throws OptError CORRUPT if the source ends before */
  skip(length: number): void {
    if (!Number.isSafeInteger(length) || length < 0 || length > this.remaining) {
      throw this.corrupt(`${length} bytes are to be skipped, got ${this.remaining}`);
    }
    this.#position += length;
    if (this.#position > this.#bufferStart + this.#buffer.byteLength) {
      this.#buffer = this.#buffer.subarray(0, 0);
      this.#bufferStart = this.#position;
    }
  }

  /** The next bytes, which `need` made takeable; a view, valid until the next `need`. */
  take(length: number): Uint8Array {
    const start = this.#advance(length);
    return this.#buffer.subarray(start, start + length);
  }

  uint8(): number {
    return this.#view.getUint8(this.#advance(1));
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
    return corrupt(this.source.path, `${problem} at byte ${this.#position}`, advice);
  }

  #advance(length: number): number {
    const start = this.#position - this.#bufferStart;
    if (start + length > this.#buffer.byteLength) throw this.corrupt(`${length} more bytes are needed`);
    this.#position += length;
    return start;
  }
}
