/** Deflated members of archives as bytes at random positions. Small ones are held, large ones stream, and begin again to go back. */
import { OptError } from "@opt/core";
import { corrupt } from "../bytes/errors";
import { type ByteSource, checkRange, readBytes } from "../bytes/source";

/** Compressed bytes that are given at once: they become at most 1032 times as many. */
const PIECE = 16 * 1024;
/** No deflated byte stands for more. */
const MOST_UNPACKED = 1032;
/** Bytes of members that an archive holds in memory. */
const MOST_HELD = 16 * 1024 * 1024;

/** The deflated members of one archive, and those of them that are held. */
export class InflatedMembers {
  readonly #held = new Map<ByteSource, Uint8Array>();
  #heldBytes = 0;

  /** @param byteLength of the contents. @throws OptError CORRUPT if so few bytes cannot hold so many */
  member(packed: ByteSource, byteLength: number): ByteSource {
    if (byteLength > packed.byteLength * MOST_UNPACKED)
      throw damaged(packed, `${packed.byteLength} deflated bytes cannot hold ${byteLength}`);
    const stream = new InflatedStream(packed, byteLength);
    let turn: Promise<unknown> = Promise.resolve();
    const read = async (target: Uint8Array, position: number): Promise<void> => {
      if (byteLength > MOST_HELD) return stream.read(target, position);
      const whole = this.#held.get(packed) ?? this.#hold(packed, await stream.whole());
      target.set(whole.subarray(position, position + target.byteLength));
    };
    return {
      path: packed.path,
      byteLength,
      async read(target, position) {
        checkRange(this, position, target.byteLength);
        if (target.byteLength === 0) return;
        const mine = turn.then(() => read(target, position));
        turn = mine.catch(() => {});
        await mine;
      },
    };
  }

  #hold(member: ByteSource, bytes: Uint8Array): Uint8Array {
    this.#held.set(member, bytes);
    this.#heldBytes += bytes.byteLength;
    for (const [oldest, { byteLength }] of this.#held) {
      if (this.#heldBytes <= MOST_HELD) break;
      this.#held.delete(oldest);
      this.#heldBytes -= byteLength;
    }
    return bytes;
  }
}

/** The first bytes of a deflated member; nothing is held for them, and no checksum vouches for them. */
export async function inflatedHead(packed: ByteSource, byteLength: number, length: number): Promise<Uint8Array> {
  // A DecompressionStream asks for all of it at once: it is given the time to put out what it has.
  const stream = new InflatedStream(packed, byteLength, () => new Promise((resolve) => setTimeout(resolve, 1)));
  const head = new Uint8Array(Math.min(length, byteLength));
  if (head.byteLength > 0) await stream.read(head, 0);
  await stream.close();
  return head;
}

/** Contents that come from front to back: one read at a time. */
class InflatedStream {
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #bytes = new Uint8Array(0);
  /** Where `#bytes` begin. */
  #begin = 0;

  constructor(
    private readonly packed: ByteSource,
    private readonly byteLength: number,
    private readonly pace?: () => Promise<void>,
  ) {}

  /** All contents; memory grows as they come. */
  async whole(): Promise<Uint8Array> {
    await this.#restart();
    const pieces: Uint8Array[] = [];
    while (await this.#next()) pieces.push(this.#bytes);
    this.#reader = undefined;
    const bytes = new Uint8Array(this.byteLength);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.byteLength;
    }
    return bytes;
  }

  async read(target: Uint8Array, position: number): Promise<void> {
    if (this.#reader === undefined || position < this.#begin) await this.#restart();
    for (let done = 0; done < target.byteLength; ) {
      const from = position + done - this.#begin;
      const piece = this.#bytes.subarray(from, from + target.byteLength - done);
      target.set(piece, done);
      done += piece.byteLength;
      if (done < target.byteLength) await this.#next();
    }
    if (position + target.byteLength < this.byteLength) return;
    // What is read to its end must end there.
    await this.#next();
    this.#reader = undefined;
  }

  async close(): Promise<void> {
    await this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
  }

  /** Takes the next piece; false at the end. @throws OptError CORRUPT if there are fewer or more bytes than the directory says */
  async #next(): Promise<boolean> {
    const { packed, byteLength } = this;
    const end = this.#begin + this.#bytes.byteLength;
    const { value, done } = await this.#reader!.read().catch((error: unknown) => {
      this.#reader = undefined;
      if (error instanceof OptError) throw error;
      throw damaged(packed, `inflating failed: ${(error as Error).message}`);
    });
    if (done && end === byteLength) return false;
    if (done || end + value.byteLength > byteLength) {
      await this.#restart();
      throw damaged(packed, `it must inflate to ${byteLength} bytes, got ${done ? end : "more"}`);
    }
    [this.#bytes, this.#begin] = [value as Uint8Array<ArrayBuffer>, end];
    return true;
  }

  async #restart(): Promise<void> {
    const { packed, pace } = this;
    await this.close();
    let position = 0;
    const compressed = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        if (position > 0) await pace?.();
        if (position === packed.byteLength) return controller.close();
        const bytes = await readBytes(packed, position, Math.min(PIECE, packed.byteLength - position));
        position += bytes.byteLength;
        controller.enqueue(bytes as Uint8Array<ArrayBuffer>);
      },
    });
    this.#reader = compressed.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    [this.#bytes, this.#begin] = [new Uint8Array(0), 0];
  }
}

const damaged = ({ path }: ByteSource, problem: string) => corrupt(path, problem);
