/** Zstandard frames from files that nobody vouches for: their sizes are bounded before memory is taken for them. */
import { corrupt } from "../bytes/errors";
import { type ByteSource, checkRange, readBytes } from "../bytes/source";

/** A block of four bytes unpacks to 128 KiB at most (RFC 8878, 3.1.1.2). */
const BLOCK = 128 * 1024;
const MOST_UNPACKED = 32 * 1024;
/** Most bytes of a frame whose length nothing else tells. */
const LONGEST = 256 * 1024 * 1024;
/** Written where the last byte and the one behind the end will be, to see whether a frame is as long as it must be. */
const FILLS = [0xa5, 0x5a];

const damaged = (where: string, problem: string) => corrupt(where, `Zstandard: ${problem}`);

/** @throws OptError CORRUPT if no frame of `packed` bytes can unpack to so many: before anything is allocated for them */
export function checkUnpacked(where: string, packed: number, byteLength: number): void {
  if (byteLength > packed * MOST_UNPACKED + BLOCK) throw damaged(where, `${packed} bytes unpack to ${byteLength}`);
}

/** The contents of one frame, which must be `byteLength` bytes. @throws OptError CORRUPT */
export async function unpacked(packed: Uint8Array, where: string, byteLength: number): Promise<Uint8Array> {
  checkUnpacked(where, packed.length, byteLength);
  const { decompress } = await import("fzstd");
  const target = new Uint8Array(byteLength + 1);
  for (const fill of FILLS) {
    target[byteLength] = fill;
    target[byteLength - 1] = fill;
    if (byteLength === 0) return target.subarray(0, 0);
    try {
      decompress(packed, target);
    } catch (error) {
      throw damaged(where, (error as Error).message);
    }
    if (target[byteLength] !== fill) break;
    if (target[byteLength - 1] !== fill) return target.subarray(0, byteLength);
  }
  throw damaged(where, `the contents must be ${byteLength} bytes`);
}

/** The contents of a frame of any length up to 256 MiB; zeros may follow where the frame does not tell its length. @throws OptError CORRUPT */
export async function unpackedWhole(packed: Uint8Array, where: string): Promise<Uint8Array> {
  const { begin, contentLength } = readHeader(packed, where);
  const byteLength = contentLength ?? longestContents(packed, begin, where);
  if (byteLength > LONGEST) throw damaged(where, `the contents are ${byteLength} bytes`);
  if (contentLength !== undefined) return unpacked(packed, where, byteLength);
  const { decompress } = await import("fzstd");
  const target = new Uint8Array(byteLength);
  try {
    decompress(packed, target);
  } catch (error) {
    throw damaged(where, (error as Error).message);
  }
  return target;
}

/** Where blocks begin, and the length of the contents if the frame tells it (RFC 8878, 3.1.1.1). */
function readHeader(packed: Uint8Array, where: string): { begin: number; contentLength: number | undefined } {
  if (packed.length < 9) throw damaged(where, "the frame ends in its header");
  if (![0x28, 0xb5, 0x2f, 0xfd].every((byte, i) => packed[i] === byte))
    throw damaged(where, "the magic number is missing");
  const flags = packed[4]!;
  const isSingle = (flags & 0x20) !== 0;
  const at = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][flags & 3]!;
  const width = [isSingle ? 1 : 0, 2, 4, 8][flags >> 6]!;
  if (at + width > packed.length) throw damaged(where, "the frame ends in its header");
  let contentLength = 0;
  for (let i = width - 1; i >= 0; i--) contentLength = contentLength * 256 + packed[at + i]!;
  if (width === 2) contentLength += 256;
  return { begin: at + width, contentLength: width === 0 ? undefined : contentLength };
}

/** What the blocks unpack to at most. */
function longestContents(packed: Uint8Array, begin: number, where: string): number {
  let length = 0;
  for (let at = begin; at + 3 <= packed.length; ) {
    const head = packed[at]! | (packed[at + 1]! << 8) | (packed[at + 2]! << 16);
    const [isLast, kind, size] = [head & 1, (head >> 1) & 3, head >> 3];
    length += kind === 2 ? BLOCK : size;
    if (isLast) return length;
    at += 3 + (kind === 1 ? 1 : size);
  }
  throw damaged(where, "the frame has no last block");
}

/** Unpacked pieces that are kept: a piece is often read in parts. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** Keeps what was unpacked last, at most 64 MiB or one piece. */
export class UnpackedPieces {
  readonly #kept = new Map<ByteSource, Promise<Uint8Array>>();
  readonly #lengths = new Map<ByteSource, number>();

  /** The contents of a frame of known length. @throws OptError CORRUPT if no frame of its length can hold them */
  source(packed: ByteSource, byteLength: number): ByteSource {
    checkUnpacked(packed.path, packed.byteLength, byteLength);
    const read = async (): Promise<Uint8Array> =>
      unpacked(await readBytes(packed, 0, packed.byteLength), packed.path, byteLength);
    const keep = (): Promise<Uint8Array> => {
      const bytes = this.#kept.get(packed) ?? read();
      this.#kept.delete(packed);
      this.#kept.set(packed, bytes);
      this.#lengths.set(packed, byteLength);
      this.#forget();
      return bytes;
    };
    return {
      path: packed.path,
      byteLength,
      async read(target, position) {
        checkRange(this, position, target.byteLength);
        target.set((await keep()).subarray(position, position + target.byteLength));
      },
    };
  }

  #forget(): void {
    let held = 0;
    for (const piece of [...this.#kept.keys()].reverse()) {
      held += this.#lengths.get(piece)!;
      if (held > KEPT_BYTES && held > this.#lengths.get(piece)!) {
        this.#kept.delete(piece);
        this.#lengths.delete(piece);
      }
    }
  }
}
