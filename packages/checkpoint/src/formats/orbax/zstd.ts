/** Zstandard frames from files that nobody vouches for: their sizes are bounded before memory is taken for them. */
import { corrupt } from "../bytes/errors";
import { type ByteSource, checkRange, readBytes } from "../bytes/source";

/** A block of four bytes unpacks to 128 KiB at most (RFC 8878, 3.1.1.2). */
const BLOCK = 128 * 1024;
const MOST_UNPACKED = 32 * 1024;
/** Most bytes of a frame whose length nothing but itself tells. */
const LONGEST = 256 * 1024 * 1024;

const damaged = (where: string, problem: string) => corrupt(where, `Zstandard: ${problem}`);

function checkUnpacked(where: string, packed: number, byteLength: number): void {
  if (byteLength > packed * MOST_UNPACKED + BLOCK)
    throw damaged(where, `${packed} bytes cannot unpack to ${byteLength}`);
}

/** The contents of one frame. Without `byteLength`, bytes of no meaning may follow them. @throws OptError CORRUPT */
export async function unpacked(packed: Uint8Array, where: string, byteLength?: number): Promise<Uint8Array> {
  const { begin, contentLength } = readHeader(packed, where);
  const length = byteLength ?? contentLength ?? longestContents(packed, begin, where);
  if (length !== (contentLength ?? length)) throw damaged(where, `${length} bytes are needed, got ${contentLength}`);
  checkUnpacked(where, packed.length, length);
  if (byteLength === undefined && length > LONGEST) throw damaged(where, `the contents are ${length} bytes`);
  const { decompress } = await import("fzstd");
  try {
    return decompress(packed, new Uint8Array(length));
  } catch (error) {
    throw damaged(where, (error as Error).message);
  }
}

/** Where blocks begin, and the length of the contents if the frame tells it (RFC 8878, 3.1.1.1). */
function readHeader(packed: Uint8Array, where: string): { begin: number; contentLength: number | undefined } {
  const isFrame = [0x28, 0xb5, 0x2f, 0xfd].every((byte, i) => packed[i] === byte);
  const flags = packed[4] ?? 0;
  const isSingle = (flags & 0x20) !== 0;
  const at = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][flags & 3]!;
  const width = [isSingle ? 1 : 0, 2, 4, 8][flags >> 6]!;
  if (!isFrame || at + width > packed.length) throw damaged(where, "the frame's header is wrong");
  let contentLength = width === 2 ? 256 : 0;
  for (let i = width - 1, scale = 256 ** i; i >= 0; i--, scale /= 256) contentLength += packed[at + i]! * scale;
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

const KEPT_BYTES = 64 * 1024 * 1024;

/** Keeps what was unpacked last, at most 64 MiB or one piece: a piece is often read in parts. */
export class UnpackedPieces {
  readonly #kept = new Map<ByteSource, Promise<Uint8Array>>();
  #held = 0;

  /** The contents of a frame of known length. @throws OptError CORRUPT if no frame of its length can hold them */
  source(packed: ByteSource, byteLength: number): ByteSource {
    const { path } = packed;
    checkUnpacked(path, packed.byteLength, byteLength);
    const unpack = async () => unpacked(await readBytes(packed, 0, packed.byteLength), path, byteLength);
    const source: ByteSource = {
      path,
      byteLength,
      read: async (target, position) => {
        checkRange(source, position, target.byteLength);
        const bytes = this.#kept.get(source) ?? this.#keep(source, unpack());
        target.set((await bytes).subarray(position, position + target.byteLength));
      },
    };
    return source;
  }

  #keep(source: ByteSource, bytes: Promise<Uint8Array>): Promise<Uint8Array> {
    this.#held += source.byteLength;
    for (const old of this.#kept.keys()) {
      if (this.#held <= KEPT_BYTES) break;
      this.#kept.delete(old);
      this.#held -= old.byteLength;
    }
    this.#kept.set(source, bytes);
    return bytes;
  }
}
