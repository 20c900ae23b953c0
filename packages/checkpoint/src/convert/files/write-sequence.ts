/** Files written from front to back: heads that are known, and between them contents that are streamed. */
import { OptError } from "@opt/core";
import { crc32 } from "../../format/crc32";
import type { OpenFile } from "../../stores/file-system";

/** Bytes of a known length, made when their turn comes, and the number of streamed bytes that follow them. */
export interface Part {
  readonly byteLength: number;
  head(): Uint8Array;
  readonly content: number;
  /** Called with the CRC-32 of the content once all of it has passed. */
  readonly done?: (crc: number) => void;
}

/** A part of bytes that are known from the start. */
export function known(bytes: Uint8Array, content = 0, done?: (crc: number) => void): Part {
  return { byteLength: bytes.byteLength, head: () => bytes, content, ...(done === undefined ? {} : { done }) };
}

const WAITING = 256 * 1024;

/** Appends the parts in the order in which they were announced; contents arrive in the same order. */
export class SequenceWriter {
  readonly #parts: Part[] = [];
  #next = 0;
  /** Small pieces wait here, so that a file of a hundred thousand heads takes few writes. */
  readonly #waiting = new Uint8Array(WAITING);
  #filled = 0;
  /** The part whose content is being written. */
  #current: Part | undefined;
  #left = 0;
  #position = 0;
  #announced = 0;
  #crc = 0;
  #contentCrc = 0;

  constructor(private readonly file: Pick<OpenFile, "write">) {}

  get announced(): number {
    return this.#announced;
  }

  get crc(): number {
    return this.#crc;
  }

  announce(parts: Iterable<Part>): void {
    for (const part of parts) {
      this.#parts.push(part);
      this.#announced += part.byteLength + part.content;
    }
  }

  /** Takes the next bytes of content, across parts where they are longer than one. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.byteLength; ) {
      await this.#passHeads();
      const piece = bytes.subarray(done, done + this.#left);
      this.#contentCrc = crc32(piece, this.#contentCrc);
      await this.#append(piece);
      this.#left -= piece.byteLength;
      done += piece.byteLength;
      this.#endContent();
    }
  }

  /** Writes what is left; returns the length of the file. */
  async finish(): Promise<number> {
    await this.#passHeads();
    await this.#flush();
    if (this.#left > 0 || this.#next < this.#parts.length) {
      throw new OptError("INTERNAL", "SequenceWriter", "the contents did not fill the announced parts.");
    }
    return this.#position;
  }

  async #passHeads(): Promise<void> {
    while (this.#left === 0 && this.#next < this.#parts.length) {
      const part = this.#parts[this.#next++]!;
      this.#current = part;
      if (this.#next === this.#parts.length) {
        this.#parts.length = 0;
        this.#next = 0;
      }
      await this.#append(part.head());
      this.#left = part.content;
      this.#contentCrc = 0;
      if (part.content === 0) part.done?.(0);
    }
  }

  #endContent(): void {
    if (this.#left === 0) this.#current?.done?.(this.#contentCrc);
  }

  async #append(bytes: Uint8Array): Promise<void> {
    if (bytes.byteLength === 0) return;
    this.#crc = crc32(bytes, this.#crc);
    if (this.#filled + bytes.byteLength > WAITING) await this.#flush();
    if (bytes.byteLength > WAITING) {
      await this.file.write(bytes, this.#position);
      this.#position += bytes.byteLength;
    } else {
      this.#waiting.set(bytes, this.#filled);
      this.#filled += bytes.byteLength;
    }
  }

  async #flush(): Promise<void> {
    if (this.#filled === 0) return;
    await this.file.write(this.#waiting.subarray(0, this.#filled), this.#position);
    this.#position += this.#filled;
    this.#filled = 0;
  }
}
