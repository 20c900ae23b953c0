/** Writes past the system's cache: the disk takes whole pages of memory, and no processor copies them. */
import * as fs from "node:fs/promises";
import { hostIo } from "@opt/core";
import { PAGE } from "../stores/scratch";

/** Less memory is not worth a mapping of its own. */
const MAPPED = 1 << 20;
/** Smaller files go through the cache: they are read soon, or over soon anyway. */
const LARGE = 4 << 20;
/** A shorter write waits for the disk longer than the copy takes. */
const LEAST = 64 << 10;
/** What a system writes at once at most, and a little less; whole pages. */
const MOST = 1 << 30;
/** How systems and their file systems say that they have no such thing, or no room for one more open file. */
const REFUSALS = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "EMFILE", "ENFILE"]);

/** V8 maps buffers that may change their length, which begin with a page so; where an engine does not, the system rejects them. */
const Resizable = ArrayBuffer as new (length: number, options: { maxByteLength: number }) => ArrayBuffer;

/** Where in each buffer its first page begins. */
const begins = new WeakMap<ArrayBufferLike, number>();

/** New memory, zeros, that begins with a page, and whose bytes are known again when they are to be written. */
export function pages(bytes: number): Uint8Array {
  if (bytes < MAPPED) return new Uint8Array(bytes);
  const made = hostIo().pages?.(bytes) ?? new Uint8Array(new Resizable(bytes, { maxByteLength: bytes }));
  begins.set(made.buffer, made.byteOffset);
  return made;
}

/** Of bytes that are to be written to `position`, those that are whole pages in memory and in the file. */
function wholePages(data: Uint8Array, position: number): [begin: number, end: number] {
  const first = begins.get(data.buffer);
  if (first === undefined || (data.byteOffset - first - position) % PAGE !== 0) return [0, 0];
  const begin = Math.ceil(position / PAGE) * PAGE - position;
  const end = Math.floor((position + data.length) / PAGE) * PAGE - position;
  return begin < end ? [begin, end] : [0, 0];
}

/** Whether a file of this length is written so. */
export function isLarge(byteLength: number): boolean {
  return fs.constants.O_DIRECT !== undefined && byteLength >= LARGE;
}

/** Bytes that are to be written at once, and how many of them were in the end. */
interface Piece {
  data: Uint8Array;
  readonly position: number;
  readonly written: Promise<number>;
}

/** Those of one file. */
export class DirectWrites {
  #handle: Promise<fs.FileHandle | undefined> | undefined;
  #isRejected = false;
  /** What the disk has not been given yet: what goes on where it ends is written with it. */
  #next: Piece | undefined;

  constructor(private readonly path: string) {}

  /** Writes what of `data` can be written so; tells which bytes it was. The others are the caller's to write. */
  async write(data: Uint8Array, position: number): Promise<[begin: number, end: number]> {
    const [begin, end] = wholePages(data, position);
    if (this.#isRejected || end - begin < LEAST) return [0, 0];
    const first = position + begin;
    const piece = this.#joined(data.subarray(begin, end), first) ?? this.#begin(data.subarray(begin, end), first);
    const done = piece.position + (await piece.written) - position;
    return [begin, Math.min(Math.max(done, begin), end)];
  }

  #begin(data: Uint8Array, position: number): Piece {
    let piece: Piece;
    const written = Promise.resolve().then(() => this.#put(piece));
    piece = { data, position, written };
    this.#next = piece;
    return piece;
  }

  /** The next piece, longer by what lies behind it in memory and in the file. */
  #joined(data: Uint8Array, position: number): Piece | undefined {
    const piece = this.#next;
    if (piece === undefined || piece.data.buffer !== data.buffer) return undefined;
    const { byteOffset, length } = piece.data;
    if (byteOffset + length !== data.byteOffset || piece.position + length !== position) return undefined;
    piece.data = new Uint8Array(data.buffer, byteOffset, length + data.length);
    return piece;
  }

  async #put(piece: Piece): Promise<number> {
    this.#handle ??= this.#open();
    const handle = await this.#handle;
    if (this.#next === piece) this.#next = undefined;
    const { data, position } = piece;
    let done = 0;
    try {
      while (handle && done < data.length)
        done += (await handle.write(data, done, Math.min(data.length - done, MOST), position + done)).bytesWritten;
    } catch (error) {
      // Also where a part was written, and what is left begins within a page: the ordinary write tells what is wrong.
      if (!isRejection(error)) throw error;
      this.#isRejected = true;
    }
    return done;
  }

  /** A second descriptor of the file: the first is for what is no whole page. */
  async #open(): Promise<fs.FileHandle | undefined> {
    try {
      return await fs.open(this.path, fs.constants.O_WRONLY | fs.constants.O_DIRECT);
    } catch (error) {
      if (!isRejection(error)) throw error;
      this.#isRejected = true;
      return undefined;
    }
  }

  async close(): Promise<void> {
    await (await this.#handle?.catch(() => undefined))?.close();
  }
}

function isRejection(error: unknown): boolean {
  return REFUSALS.has((error as NodeJS.ErrnoException).code ?? "");
}
