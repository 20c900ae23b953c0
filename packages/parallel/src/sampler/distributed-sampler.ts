/** Which samples a rank takes: PyTorch's DistributedSampler, which also goes on in the middle of an epoch on other ranks. */
import { check, checkOptions, Generator, show } from "@opt/core";

const WHERE = "DistributedSampler";

export interface DistributedSamplerOptions {
  readonly rank: number;
  /** How many ranks. */
  readonly size: number;
  /** Another order in each epoch. Default true. */
  readonly shuffle?: boolean;
  /** Of the order, with the epoch: the same on all ranks. Default 0. */
  readonly seed?: number;
  /** Leaves out samples that not all ranks can have one of, instead of repeating the first. Default false. */
  readonly dropLast?: boolean;
}

/** Plain JSON: where the epoch stands, the same on all ranks. */
export interface DistributedSamplerState {
  epoch: number;
  /** Samples of the epoch that were taken, by all ranks together. */
  taken: number;
  /** Of the dataset and its order. */
  samples: number;
  seed: number;
  shuffle: boolean;
}

/**
 * Positions in a dataset of `length` samples for one rank: r, r + W, r + 2 W, ... of the epoch's order, ceil(length / W) on each rank
 * (padded with samples from the order's start), or floor(length / W) with `dropLast`. A `sampler` for `DataLoader`.
 *
 * `take(n)` says that every rank has trained on n samples more. After `loadStateDict` the epoch goes on behind those, on any number
 * of ranks: with the same samples per step of all ranks together, each step has the samples that it would have had.
 *
 * @example
 * const sampler = new DistributedSampler(10, { rank: 1, size: 4, shuffle: false });
 * console.log([...sampler]); // [1, 5, 9]: 10 samples are padded to 12
 */
export class DistributedSampler implements Iterable<number> {
  readonly #samples: number;
  readonly #options: Required<DistributedSamplerOptions>;
  #epoch = 0;
  #taken = 0;

  /** @throws OptError BAD_ARGUMENT */
  constructor(length: number, options: DistributedSamplerOptions) {
    const kinds = { rank: "number", size: "number", shuffle: "boolean", seed: "number", dropLast: "boolean" } as const;
    checkOptions(WHERE, options, kinds);
    const { rank, size, shuffle = true, seed = 0, dropLast = false } = options;
    checkCount("length", length);
    check(size >= 1, "BAD_ARGUMENT", WHERE, () => `size must be at least 1, got ${show(size)}.`, "communicator.size");
    for (const [name, value] of Object.entries({ rank, size, seed })) checkCount(name, value);
    check(
      rank < size,
      "BAD_ARGUMENT",
      WHERE,
      () => `rank must be in 0 to ${size - 1}, got ${rank}.`,
      "communicator.rank",
    );
    this.#samples = length;
    this.#options = { rank, size, shuffle, seed, dropLast };
  }

  /** Of this rank, in what is left of the epoch. */
  get length(): number {
    const left = this.#samples - this.#taken;
    const { size, dropLast } = this.#options;
    return Math.max(0, dropLast ? Math.floor(left / size) : Math.ceil(left / size));
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** The order of that epoch, from its beginning; the same epoch again changes nothing. @throws OptError BAD_ARGUMENT */
  setEpoch(epoch: number): void {
    checkCount("the epoch", epoch);
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#taken = 0;
  }

  /** Every rank has trained on `count` samples more. @throws OptError BAD_ARGUMENT */
  take(count: number): void {
    checkCount("the count", count);
    this.#taken = this.stateAfter(this.stateDict(), count).taken;
  }

  *[Symbol.iterator](): IterableIterator<number> {
    const { rank, size, shuffle, seed } = this.#options;
    const { length } = this;
    const order = shuffle ? new Generator(seed + this.#epoch).permutation(this.#samples) : undefined;
    const begin = this.#taken;
    for (let i = 0; i < length; i++) {
      const position = begin + rank + i * size;
      // What is missing at the end comes from the beginning of the order, over and over.
      const at = position < this.#samples ? position : (position - this.#samples) % this.#samples;
      yield order === undefined ? at : order[at]!;
    }
  }

  stateDict(): DistributedSamplerState {
    const { seed, shuffle } = this.#options;
    return { epoch: this.#epoch, taken: this.#taken, samples: this.#samples, seed, shuffle };
  }

  /** A state of this sampler when every rank has taken `count` samples more. A `DataLoader` saves it. */
  stateAfter(state: DistributedSamplerState, count: number): DistributedSamplerState {
    return { ...state, taken: Math.min(this.#samples, state.taken + count * this.#options.size) };
  }

  /** Goes on where the state stands, whatever its number of ranks. @throws OptError BAD_STATE if it is of another dataset or order */
  loadStateDict(saved: unknown): void {
    const state = saved as DistributedSamplerState;
    const { seed, shuffle } = this.#options;
    const own = { samples: this.#samples, seed, shuffle };
    const isState =
      typeof state === "object" &&
      state !== null &&
      isCount(state.epoch) &&
      isCount(state.taken) &&
      state.taken <= own.samples;
    check(isState, "BAD_STATE", WHERE, () => `needs what stateDict() returned, got ${show(state)}.`);
    for (const [name, value] of Object.entries(own)) {
      const saved = (state as unknown as Record<string, unknown>)[name];
      check(
        saved === value,
        "BAD_STATE",
        WHERE,
        () => `${name} must be ${show(saved)} as in the state, got ${show(value)}.`,
        "Make the sampler as it was made before.",
      );
    }
    this.#epoch = state.epoch;
    this.#taken = state.taken;
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function checkCount(name: string, value: unknown): void {
  check(isCount(value), "BAD_ARGUMENT", WHERE, () => `${name} must be a whole number from 0 on, got ${show(value)}.`);
}
