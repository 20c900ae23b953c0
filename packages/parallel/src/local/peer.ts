/** Another rank of this machine: what was sent to it, what it sent, and who waits for that. */
import type { Socket } from "node:net";
import { OptError } from "@opt/core";
import { type Arena, readMemory } from "./arena";
import { type Frame, FrameReader, INLINE, READ, SHARED, writeHeader } from "./frame";

/** Up to this length a message is faster on the socket than two calls more and an answer. */
const SMALL = 4096;
/** Pieces of large messages: the receiver copies one while the sender writes the next. */
const PIECE = 4 << 20;
/** Without shared memory bytes take the socket: the reader holds a piece until it is whole. */
const INLINE_PIECE = 64 << 10;

/** A piece that came, and that nobody asked for yet. */
interface Waiting {
  readonly frame: Frame;
  /** A copy of what came on the socket; undefined: it lies in the sender's memory. */
  readonly bytes?: Uint8Array;
}

interface Posted {
  readonly into: Uint8Array;
  done: number;
  resolve(): void;
  reject(error: Error): void;
}

interface Unsent {
  readonly tag: number;
  readonly bytes: Uint8Array;
  done: number;
  resolve(): void;
  reject(error: Error): void;
}

export class Peer {
  readonly #waiting = new Map<number, Waiting[]>();
  readonly #posted = new Map<number, Posted[]>();
  readonly #unsent: Unsent[] = [];
  #writing = 0;
  #ended: OptError | undefined;
  #flushed: (() => void) | undefined;
  #verdict: NodeJS.Timeout | undefined;

  /**
   * @param arena this process's own memory
   * @param memory the file of the other's
   * @param onRoom called when a place in `arena` became free
   */
  constructor(
    readonly rank: number,
    private readonly socket: Socket,
    private readonly arena: Arena,
    private readonly memory: number,
    private readonly onRoom: () => void,
  ) {
    const reader = new FrameReader();
    socket.on("data", (chunk: Buffer) => {
      for (const { frame, bytes } of reader.read(chunk)) this.#arrived(frame, bytes);
    });
    socket.on("error", () => {}); // "close" follows
    this.#hold();
  }

  send(tag: number, bytes: Uint8Array): Promise<void> {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#unsent.push({ tag, bytes, done: 0, resolve, reject });
      this.pump();
    });
  }

  receive(tag: number, into: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      const queue = this.#posted.get(tag);
      const posted = { into, done: 0, resolve, reject };
      if (queue) queue.push(posted);
      else this.#posted.set(tag, [posted]);
      this.#match(tag);
      if (this.#ended && this.#posted.get(tag)?.includes(posted)) this.#end(this.#ended);
      this.#hold();
    });
  }

  /** Sends as much as there is room for. */
  pump(): void {
    while (this.#unsent.length > 0 && this.#sendPiece(this.#unsent[0]!)) {}
    this.#hold();
  }

  /** Its process has ended. What it sent before may still be received; who waits for more is told after `patience` milliseconds. */
  lost(error: OptError, patience: number): void {
    this.#verdict ??= setTimeout(() => this.#end(error), patience);
    this.#hold();
  }

  #end(error: OptError): void {
    this.#ended = error;
    for (const { reject } of this.#unsent.splice(0)) reject(error);
    for (const queue of this.#posted.values()) for (const { reject } of queue) reject(error);
    this.#posted.clear();
    this.#writing = 0;
    this.#hold();
  }

  /** Resolves when all has left. */
  async close(): Promise<void> {
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#flushed = resolve));
    this.socket.end();
    this.socket.unref();
  }

  get #isBusy(): boolean {
    return this.#unsent.length > 0 || this.#writing > 0;
  }

  /** A rank that waits for nothing may end. */
  #hold(): void {
    if (!this.#isBusy) this.#flushed?.();
    const waits = this.#isBusy || this.#posted.size > 0;
    for (const handle of [this.socket, this.#verdict]) waits ? handle?.ref() : handle?.unref();
  }

  /** False where there is no room yet. */
  #sendPiece(unsent: Unsent): boolean {
    const { tag, bytes, done } = unsent;
    const message = bytes.byteLength;
    const isSmall = message <= SMALL;
    const length = Math.min(message - done, PIECE);
    const offset = isSmall ? undefined : this.arena.put(bytes.subarray(done, done + length));
    if (offset !== undefined) {
      this.#write(writeHeader({ kind: SHARED, tag, message, length, offset }));
      unsent.done += length;
    } else if (isSmall || this.arena.isEmpty) {
      // A machine without shared memory: slower, but it goes on.
      const some = Math.min(length, INLINE_PIECE);
      this.#write(writeHeader({ kind: INLINE, tag, message, length: some, offset: 0 }));
      this.#write(Buffer.from(bytes.subarray(done, done + some)));
      unsent.done += some;
    } else return false;
    if (unsent.done < message) return true;
    this.#unsent.shift();
    unsent.resolve();
    return true;
  }

  #write(bytes: Buffer): void {
    this.#writing++;
    this.socket.write(bytes, () => {
      this.#writing = Math.max(0, this.#writing - 1);
      this.#hold();
    });
  }

  #arrived(frame: Frame, bytes: Uint8Array): void {
    if (frame.kind === READ) {
      this.arena.free(frame.offset);
      this.onRoom();
      return;
    }
    const waiting = frame.kind === SHARED ? { frame } : { frame, bytes };
    const queue = this.#waiting.get(frame.tag);
    if (queue) queue.push(waiting);
    else this.#waiting.set(frame.tag, [waiting]);
    this.#match(frame.tag);
    // The socket's buffer is used again.
    const kept = this.#waiting.get(frame.tag);
    const last = kept?.[kept.length - 1];
    if (last === waiting && waiting.bytes) kept![kept!.length - 1] = { frame, bytes: waiting.bytes.slice() };
    this.#hold();
  }

  #match(tag: number): void {
    const waiting = this.#waiting.get(tag);
    const posted = this.#posted.get(tag);
    while (waiting && posted && waiting.length > 0 && posted.length > 0) this.#deliver(waiting.shift()!, posted);
    if (waiting?.length === 0) this.#waiting.delete(tag);
    if (posted?.length === 0) this.#posted.delete(tag);
  }

  #deliver({ frame, bytes }: Waiting, posted: Posted[]): void {
    const [receiver] = posted as [Posted];
    const { into, done } = receiver;
    if (frame.message !== into.byteLength) {
      posted.shift();
      receiver.reject(
        new OptError(
          "BAD_SHAPE",
          "receive",
          `rank ${this.rank} sent ${frame.message} bytes where this rank waits for ${into.byteLength}.`,
          "All ranks call the same collectives in the same order, with tensors of one size.",
        ),
      );
      return;
    }
    const target = into.subarray(done, done + frame.length);
    if (bytes) target.set(bytes);
    else {
      readMemory(this.memory, target, frame.offset);
      this.#write(writeHeader({ ...frame, kind: READ }));
    }
    receiver.done += frame.length;
    if (receiver.done < into.byteLength) return;
    posted.shift();
    receiver.resolve();
  }
}
