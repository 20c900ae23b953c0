/** What travels on the socket between two ranks: a header of 32 bytes, and after some of them bytes. */

export const INLINE = 1; // bytes follow
export const SHARED = 2; // bytes lie in the sender's memory
export const READ = 3; // they were read: the place is free

export interface Frame {
  readonly kind: number;
  readonly tag: number;
  /** Of the whole message, of which this is a piece. */
  readonly message: number;
  /** Of this piece. */
  readonly length: number;
  /** In the sender's memory. */
  readonly offset: number;
}

const HEADER = 32;

export function writeHeader({ kind, tag, message, length, offset }: Frame): Buffer {
  const header = Buffer.allocUnsafe(HEADER);
  header.writeUInt32LE(kind, 0);
  header.writeUInt32LE(tag, 4);
  header.writeDoubleLE(message, 8);
  header.writeDoubleLE(length, 16);
  header.writeDoubleLE(offset, 24);
  return header;
}

/** Cuts what a socket brings into frames, with the bytes that follow them. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<{ frame: Frame; bytes: Uint8Array }> {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (rest.length >= HEADER) {
      const frame = {
        kind: rest.readUInt32LE(0),
        tag: rest.readUInt32LE(4),
        message: rest.readDoubleLE(8),
        length: rest.readDoubleLE(16),
        offset: rest.readDoubleLE(24),
      };
      const end = HEADER + (frame.kind === INLINE ? frame.length : 0);
      if (rest.length < end) break;
      const bytes = rest.subarray(HEADER, end);
      rest = rest.subarray(end);
      yield { frame, bytes };
    }
    this.#rest = Buffer.from(rest); // a copy: whoever reads uses the chunk again
  }
}
