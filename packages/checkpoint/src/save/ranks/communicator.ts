/** How the ranks of a run agree on a save: a few small messages of plain JSON. Tensors never pass through here. */
import { check, OptError, show } from "@opt/core";

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

/**
 * A communicator over anything that can exchange one value per rank, in the order of the calls.
 *
 * @throws OptError BAD_ARGUMENT for too few values
 */
export function communicatorOver(rank: number, size: number, exchange: Exchange): Communicator {
  const all = async (value: unknown) => {
    const values = await exchange(value);
    check(
      Array.isArray(values) && values.length === size,
      "BAD_ARGUMENT",
      "communicatorOver",
      () => `exchange must resolve with ${size} values, got ${values?.length ?? show(values)}.`,
      "One per rank.",
    );
    return values;
  };
  return {
    rank,
    size,
    async barrier() {
      await all(null);
    },
    async gather<T>(value: T) {
      const values = await all(value);
      return rank === 0 ? (values as T[]) : undefined;
    },
    async broadcast<T>(value: T | undefined) {
      return (await all(rank === 0 ? value! : null))[0] as T;
    },
  };
}

/** Where values wait until every rank has brought its own. */
export class Rendezvous {
  readonly #waiting: { readonly value: unknown; readonly resolve: (all: unknown[]) => void }[][];

  constructor(size: number) {
    this.#waiting = Array.from({ length: size }, () => []);
  }

  exchange(rank: number, value: unknown): Promise<unknown[]> {
    return new Promise((resolve) => {
      this.#waiting[rank]!.push({ value, resolve });
      if (this.#waiting.some(({ length }) => length === 0)) return;
      const round = this.#waiting.map((values) => values.shift()!);
      for (const one of round) one.resolve(round.map(({ value }) => value));
    });
  }
}

/** Several ranks inside one process, for simulations and tests: one communicator each. */
export function localCommunicators(size: number): Communicator[] {
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new OptError("BAD_ARGUMENT", "localCommunicators", `size must be a positive whole number, got ${size}.`);
  }
  const point = new Rendezvous(size);
  return Array.from({ length: size }, (_, rank) =>
    // A copy, as if it had travelled.
    communicatorOver(rank, size, (value) => point.exchange(rank, JSON.parse(JSON.stringify(value)))),
  );
}
