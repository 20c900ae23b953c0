/** How the ranks of a run agree on a save: a few small messages of plain JSON. Tensors never pass through here. */
import { OptError } from "@opt/core";

export interface Communicator {
  readonly rank: number;
  readonly size: number;
  /** Returns when every rank has come here. */
  barrier(): Promise<void>;
  /** Rank 0 gets every rank's value (plain JSON), in rank order; the others get undefined. */
  gather<T>(value: T): Promise<T[] | undefined>;
  /** Every rank gets rank 0's value. */
  broadcast<T>(value: T | undefined): Promise<T>;
  /**
   * The same ranks over a channel of their own, always the same one, for an `async` save: the program may call other collectives while
   * it goes on. Without it, none before it has ended.
   */
  aside?(): Communicator;
}

/** One process on its own. */
export function singleProcess(): Communicator {
  return {
    rank: 0,
    size: 1,
    barrier: async () => {},
    gather: async (value) => [value],
    broadcast: async (value) => value!,
  };
}

/** Sends one value of this rank, and resolves with the values of all ranks, in rank order. */
export type Exchange = (contribution: unknown) => Promise<unknown[]>;

/** A communicator over anything that can exchange one value per rank, in the order of the calls. */
export function communicatorOver(rank: number, size: number, exchange: Exchange): Communicator {
  return {
    rank,
    size,
    async barrier() {
      await exchange(null);
    },
    async gather<T>(value: T) {
      const all = await exchange(value);
      return rank === 0 ? (all as T[]) : undefined;
    },
    async broadcast<T>(value: T | undefined) {
      return (await exchange(rank === 0 ? value! : null))[0] as T;
    },
  };
}

/** Where contributions wait until every rank has brought its own. */
export class MeetingPoint {
  readonly #size: number;
  readonly #rounds: {
    values: unknown[];
    present: number;
    resolve: (all: unknown[]) => void;
    done: Promise<unknown[]>;
  }[] = [];
  readonly #next: number[];

  constructor(size: number) {
    this.#size = size;
    this.#next = new Array(size).fill(0);
  }

  meet(rank: number, value: unknown): Promise<unknown[]> {
    const index = this.#next[rank]!++;
    let round = this.#rounds[index];
    if (!round) {
      let resolve: (all: unknown[]) => void = () => {};
      const done = new Promise<unknown[]>((r) => {
        resolve = r;
      });
      round = { values: new Array(this.#size).fill(null), present: 0, resolve, done };
      this.#rounds[index] = round;
    }
    round.values[rank] = value;
    if (++round.present === this.#size) {
      round.resolve(round.values);
      delete this.#rounds[index];
    }
    return round.done;
  }
}

/** Several ranks inside one process, for simulations and tests: one communicator each. */
export function localCommunicators(size: number): Communicator[] {
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new OptError("BAD_ARGUMENT", "localCommunicators", `size must be a positive whole number, got ${size}.`);
  }
  const point = new MeetingPoint(size);
  return Array.from({ length: size }, (_, rank) =>
    // A copy, as if it had travelled.
    communicatorOver(rank, size, (value) => point.meet(rank, JSON.parse(JSON.stringify(value)))),
  );
}
