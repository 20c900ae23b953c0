/** Another rank of this machine: what was sent to it, what it sent, and who waits for that. */
import { readSync, writevSync } from "node:fs";
import type { Socket } from "node:net";
import { OptError } from "@opt/core";
import type { Arena } from "./arena";
import { type Frame, FrameReader, INLINE, READ, SHARED, writeHeader } from "./frame";
import type { SharedFile } from "./shared-file";

/** Up to this length a message is faster on the socket than two calls more and an answer. */
const SMALL = 4096;
/** Pieces of large messages: the receiver copies one while the sender writes the next. */
const PIECE = 4 << 20;
/** Without shared memory bytes take the socket: the reader holds a piece until it is whole. */
const INLINE_PIECE = 64 << 10;

/** What is told of at once, unless the program waits before: each word wakes the other rank, which may take this one's processor. */
const TOLD_AT_ONCE = 8 << 20;

/** A piece that came, and that nobody asked for yet. */
interface UnclaimedPiece {
  readonly frame: Frame;
  /** A copy of what came on the socket; undefined: it lies in the sender's memory. */
  readonly bytes?: Uint8Array;
}

/** Told once, when a message has moved or failed. */
type EndCallback = (error?: Error) => void;

interface PostedReceive {
  readonly into: Uint8Array;
  done: number;
  readonly ended: EndCallback;
}

interface QueuedSend {
  readonly tag: number;
  readonly bytes: Uint8Array;
  done: number;
  readonly ended: EndCallback;
}

export class Peer {
  readonly #waiting = new Map<number, UnclaimedPiece[]>();
  readonly #posted = new Map<number, PostedReceive[]>();
  readonly #unsent: QueuedSend[] = [];
  readonly #reader = new FrameReader();
  /** What the socket has not taken yet. */
  readonly #outbox: Uint8Array[] = [];
  /** Bytes that the outbox tells of. */
  #untold = 0;
  #willFlush = false;
  #again: NodeJS.Timeout | undefined;
  #ended: OptError | undefined;
  #flushed: (() => void) | undefined;
  #verdict: NodeJS.Timeout | undefined;

  /**
   * @param socket of which `file` is the descriptor: it is also read and written without waiting for the event loop
   * @param arena this process's own memory
   * @param memory the other's
   * @param onRoom called when a place in `arena` became free
   */
  constructor(
    readonly rank: number,
    private readonly socket: Socket,
    private readonly file: number,
    private readonly arena: Arena,
    private readonly memory: SharedFile,
    private readonly onRoom: () => void,
  ) {
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => {}); // "close" follows
    this.#hold();
  }

  send(tag: number, bytes: Uint8Array, ended: EndCallback): void {
    if (this.#ended) {
      ended(this.#ended);
      return;
    }
    this.#unsent.push({ tag, bytes, done: 0, ended });
    this.pump();
  }

  receive(tag: number, into: Uint8Array, ended: EndCallback): void {
    const queue = this.#posted.get(tag);
    const posted = { into, done: 0, ended };
    if (queue) queue.push(posted);
    else this.#posted.set(tag, [posted]);
    this.#match(tag);
    if (this.#ended && this.#posted.get(tag)?.includes(posted)) this.#end(this.#ended);
    this.#hold();
  }

  /** Takes what has come and writes what waits, now. False when the other's process has ended. */
  poll(chunk: Buffer): boolean {
    this.#flush();
    for (;;) {
      const count = attempt(() => readSync(this.file, chunk));
      if (count === undefined || count <= 0) {
        this.#flush();
        return count === undefined;
      }
      this.#read(chunk.subarray(0, count));
    }
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
    const all = [...this.#unsent.splice(0), ...[...this.#posted.values()].flat()];
    this.#posted.clear();
    this.#outbox.length = 0;
    this.#hold();
    for (const { ended } of all) ended(error);
  }

  /** Resolves when all has left. */
  async close(): Promise<void> {
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#flushed = resolve));
    this.socket.end();
    this.socket.unref();
  }

  get #isBusy(): boolean {
    return this.#unsent.length > 0 || this.#outbox.length > 0;
  }

  /** A rank that waits for nothing may end. */
  #hold(): void {
    if (!this.#isBusy) this.#flushed?.();
    const waits = this.#isBusy || this.#posted.size > 0;
    // A socket that is closed would wait for its next connection.
    for (const handle of [this.socket.destroyed ? undefined : this.socket, this.#verdict])
      waits ? handle?.ref() : handle?.unref();
  }

  /** False where there is no room yet. */
  #sendPiece(unsent: QueuedSend): boolean {
    const { tag, bytes, done } = unsent;
    const message = bytes.byteLength;
    const isSmall = message <= SMALL;
    const length = Math.min(message - done, PIECE);
    const offset = isSmall ? undefined : this.arena.put(bytes.subarray(done, done + length));
    if (offset !== undefined) {
      this.#write(writeHeader({ kind: SHARED, tag, message, length, offset }), length);
      unsent.done += length;
    } else if (isSmall || this.arena.isEmpty) {
      // A machine without shared memory: slower, but it goes on.
      const some = Math.min(length, INLINE_PIECE);
      const header = writeHeader({ kind: INLINE, tag, message, length: some, offset: 0 });
      this.#write(Buffer.concat([header, bytes.subarray(done, done + some)]), some);
      unsent.done += some;
    } else return false;
    if (unsent.done < message) return true;
    this.#unsent.shift();
    unsent.ended();
    return true;
  }

  #read(chunk: Buffer): void {
    for (const { frame, bytes } of this.#reader.read(chunk)) this.#arrived(frame, bytes);
  }

  /** Leaves when the program waits, or when it polls. */
  #write(bytes: Buffer, tells = 0): void {
    this.#outbox.push(bytes);
    this.#untold += tells;
    if (this.#untold >= TOLD_AT_ONCE) this.#flush();
    else if (!this.#willFlush) {
      this.#willFlush = true;
      queueMicrotask(() => {
        this.#willFlush = false;
        this.#flush();
      });
    }
  }

  #flush(): void {
    const { length } = this.#outbox;
    this.#untold = 0;
    while (this.#outbox.length > 0) {
      const count = attempt(() => writevSync(this.file, this.#outbox));
      if (count === undefined) break;
      if (count < 0)
        this.#outbox.length = 0; // no one is there: the end of the socket is told by itself
      else this.#leave(count);
    }
    // The event loop does not say when a descriptor that others write takes more.
    if (this.#outbox.length > 0) {
      this.#again ??= setTimeout(() => {
        this.#again = undefined;
        this.#flush();
      }, 1);
    } else if (length > 0) this.#hold();
  }

  /** So many bytes of the outbox have left. */
  #leave(count: number): void {
    let rest = count;
    while (rest > 0) {
      const [first] = this.#outbox as [Uint8Array];
      if (rest < first.byteLength) this.#outbox[0] = first.subarray(rest);
      else this.#outbox.shift();
      rest -= Math.min(rest, first.byteLength);
    }
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
    // The chunk is used again. (A Buffer's slice would be no copy.)
    const kept = this.#waiting.get(frame.tag);
    const last = kept?.[kept.length - 1];
    if (last === waiting && waiting.bytes) kept![kept!.length - 1] = { frame, bytes: new Uint8Array(waiting.bytes) };
    this.#hold();
  }

  #match(tag: number): void {
    const waiting = this.#waiting.get(tag);
    const posted = this.#posted.get(tag);
    const over: (() => void)[] = [];
    while (waiting && posted && waiting.length > 0 && posted.length > 0)
      over.push(this.#deliver(waiting.shift()!, posted));
    if (waiting?.length === 0) this.#waiting.delete(tag);
    if (posted?.length === 0) this.#posted.delete(tag);
    for (const tell of over) tell(); // who is told may ask for more of this tag
  }

  /** @returns what is to be told when the lists are in order */
  #deliver({ frame, bytes }: UnclaimedPiece, posted: PostedReceive[]): () => void {
    const [receiver] = posted as [PostedReceive];
    const { into, done, ended } = receiver;
    if (frame.message !== into.byteLength) {
      posted.shift();
      const problem = `rank ${this.rank} sent ${frame.message} bytes where this rank waits for ${into.byteLength}.`;
      const advice = "All ranks call the same collectives in the same order, with tensors of one size.";
      return () => ended(new OptError("BAD_SHAPE", "receive", problem, advice));
    }
    const target = into.subarray(done, done + frame.length);
    if (bytes) target.set(bytes);
    else {
      this.memory.read(target, frame.offset);
      this.#write(writeHeader({ ...frame, kind: READ }));
    }
    receiver.done += frame.length;
    if (receiver.done < into.byteLength) return () => {};
    posted.shift();
    return () => ended();
  }
}

/** What a call on a socket gives: undefined where it would have to wait, -1 where no one is at the other end. */
function attempt(call: () => number): number | undefined {
  try {
    return call();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EAGAIN" || code === "EWOULDBLOCK") return undefined;
    if (code === "EPIPE" || code === "ECONNRESET" || code === "EBADF") return -1;
    throw error;
  }
}
