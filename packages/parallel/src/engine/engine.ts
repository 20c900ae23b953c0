/** What an engine does: it moves bytes between ranks. What they mean, and every collective, is the communicator's. */
import type { DType } from "@opt/core";

export type Reduction = "sum" | "mean" | "min" | "max";

/**
 * The ranks of one job, as this process sees them. Messages of one sender with one tag arrive in the order in which they were sent;
 * an engine copies nothing that it can avoid, and goes on by itself while JavaScript computes where it can.
 */
export interface Engine {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  /**
   * Resolves when `bytes` may be changed again; the receiver need not have them yet. As much as possible leaves before it returns.
   * `to` is never the own rank, `tag` is in [0, 2^26). Rejects with OptError IO, naming the rank, where that has ended.
   */
  send(to: number, tag: number, bytes: Uint8Array): Promise<void>;
  /** Fills `into` with the next message of `from` with this tag. Rejects with OptError BAD_SHAPE where that has another length; IO as `send`. */
  receive(from: number, tag: number, into: Uint8Array): Promise<void>;
  /**
   * As `send` and `receive`, with a call in place of a promise; `poll` takes what has come, without waiting, and makes these calls. So
   * sums go on in the middle of a backward, which is synchronous. Both or none: left out, they go on when it has ended.
   */
  begin?(move: Move, ended: (error?: Error) => void): void;
  poll?(): void;
  /** The engine's own all-reduce, for `reduction: "engine"`; undefined, or left out, where the ordered one serves these members and elements. */
  allReduceOf?(members: readonly number[], dtype: DType): AllReduce | undefined;
  /**
   * Does all of these before it returns, and blocks the thread meanwhile: a sum in the middle of a forward or backward cannot wait
   * for a promise. Throws as `send` and `receive` reject, and MISSING after `timeout` milliseconds. Left out, layers that need it are rejected.
   */
  exchangeNow?(moves: readonly Move[], timeout: number): void;
  /** What was sent has left. Never waits for other ranks. */
  close(): Promise<void>;
}

/** In place, among all members: `tag` is the same on all of them, and of no message. Rejects as `send`. */
export type AllReduce = (tag: number, bytes: Uint8Array, reduction: Exclude<Reduction, "mean">) => Promise<void>;

/** Sends `bytes` to a rank, or fills them with what it sends. */
export interface Move {
  readonly kind: "send" | "receive";
  readonly rank: number;
  readonly tag: number;
  readonly bytes: Uint8Array;
}

export interface EngineRegistration {
  readonly name: string;
  /** Of several engines whose launcher started this process, the one of the highest rank is taken: MPI 20, local 10, single 0. */
  readonly rank: number;
  /** What a user types, for the message of who did not. */
  readonly command: string;
  /** True if a launcher of this engine started this process. */
  isPresent(): boolean;
  /** @param timeout milliseconds to wait for the other ranks at most */
  open(timeout: number): Promise<Engine>;
}
