/** Batches of a dataset, epoch after epoch. */
import {
  check,
  checkGenerator,
  checkOptions,
  defaultGenerator,
  Generator,
  type OptionKind,
  show,
  Tensor,
} from "@opt/core";
import { batchOf, isLater, unheard } from "./batch";
import type { Collated } from "./collate";
import { type BatchedDataset, checkDataset, checkIndex, type Dataset, isCount } from "./dataset";

export interface DataLoaderOptions<Sample, Batch> {
  /** Samples of a batch; the last may have fewer. Default 1. */
  batchSize?: number;
  /** Another order in each epoch. Default false. */
  shuffle?: boolean;
  /** Leaves out a last batch that is not full. Default false. */
  dropLast?: boolean;
  /** Draws one seed for each epoch; its state is part of the loader's. By default the one that `manualSeed` seeds, whose state is not. */
  generator?: Generator;
  /** Positions in the order of an epoch, asked for at its start; instead of `shuffle`. */
  sampler?: Iterable<number> & { readonly length: number };
  /** How many batches are begun ahead where samples come later. Default 2. */
  prefetch?: number;
  /** Makes a batch of samples. By default `collate`, or what the dataset itself does. Samples that are tensors it frees itself, or nobody. */
  collate?: (samples: Sample[]) => Batch | Promise<Batch>;
}

/** Plain JSON: where an epoch stands, whatever the number of ranks and the size of batches. */
export interface DataLoaderState {
  /** Of the order of the epoch that goes on; null between two epochs. */
  seed: number | null;
  /** Samples of that order that all ranks together have been handed. */
  taken: number;
  /** Of the order. */
  samples: number;
  generator?: ReturnType<Generator["stateDict"]>;
  /** Of a sampler that keeps its place. It is that place, and `taken` is 0. */
  sampler?: object;
}

/** An epoch that is under way. */
interface Epoch {
  readonly seed: number;
  /** Samples that were taken before this loop. */
  readonly begun: number;
  /** This rank's samples behind those. */
  readonly order: Int32Array;
  /** Where the sampler stood. */
  readonly sampler: object | undefined;
  served: number;
}

/** Which samples of an epoch's order a loader has: of a contiguous part of it every `ranks`-th from `rank` on. */
interface Share {
  part(samples: number): readonly [begin: number, end: number];
  readonly rank: number;
  readonly ranks: number;
}

/** A sampler that goes on where it stopped, on any number of ranks: `DistributedSampler`. */
interface PlacedSampler {
  /** `taken`: how many samples of the epoch's order all ranks have had. */
  stateDict(): { readonly taken: number };
  loadStateDict(state: unknown): void;
  /** The state when each rank has taken `count` samples more. */
  stateAfter(state: object, count: number): object;
}

const KINDS: Readonly<Record<keyof DataLoaderOptions<unknown, unknown>, OptionKind>> = {
  batchSize: "number",
  shuffle: "boolean",
  dropLast: "boolean",
  generator: "object",
  sampler: "any",
  prefetch: "number",
  collate: "function",
};
const WHERE = "DataLoader";

/**
 * Batches of a dataset: `for (const batch of loader)` where samples are there, `for await` where they come later.
 * The tensors of a batch live until the next batch is asked for or the loop ends: `clone()` what is kept. Each loop is an epoch;
 * `stateDict` in its middle says where, and the next loop after `loadStateDict` goes on with the batch that would have come.
 *
 * @example
 * const data = new TensorDataset(randn([100, 4]), randn([100, 1]));
 * const loader = new DataLoader(data, { batchSize: 16, shuffle: true, generator: new Generator(1) });
 * for (const [x, y] of loader) tidy(() => x.sum().add(y.sum())); // 7 batches
 */
export class DataLoader<Sample, Batch = Collated<Sample>> {
  readonly batchSize: number;
  readonly dropLast: boolean;
  readonly #dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[];
  readonly #options: DataLoaderOptions<Sample, Batch>;
  readonly #prefetch: number;
  /** Tensors that are samples: the dataset's own, also in a batch. */
  readonly #given = new WeakSet<Tensor>();
  #epoch: Epoch | null = null;
  /** Loaded: where the next epoch begins. */
  #resumed: { readonly seed: number; readonly taken: number } | null = null;
  /** Loaded: its sampler does not stand at an epoch's start. */
  #isInEpoch = false;
  #share: Share = { part: (samples) => [0, samples], rank: 0, ranks: 1 };

  /** @throws OptError BAD_ARGUMENT */
  constructor(
    dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
    options: DataLoaderOptions<Sample, Batch> = {},
  ) {
    checkDataset(WHERE, dataset);
    checkOptions(WHERE, options, KINDS);
    const { batchSize = 1, prefetch = 2, dropLast = false, generator, sampler, shuffle = false } = options;
    for (const [name, value, least, example] of [
      ["batchSize", batchSize, 1, 32],
      ["prefetch", prefetch, 0, 2],
    ] as const) {
      check(
        isCount(value) && value >= least,
        "BAD_ARGUMENT",
        WHERE,
        () => `${name} must be an integer >= ${least}, got ${show(value)}.`,
        `For example ${example}.`,
      );
    }
    if (generator !== undefined) checkGenerator(WHERE, generator);
    if (sampler !== undefined) checkSampler(sampler, shuffle);
    this.#dataset = dataset;
    this.#options = { ...options };
    this.batchSize = batchSize;
    this.#prefetch = prefetch;
    this.dropLast = dropLast;
  }

  /** Batches of an epoch. */
  get length(): number {
    return this.#batches(this.#samples);
  }

  /** The option of that name: who trains several epochs with ranks calls its `setEpoch`. */
  get sampler(): DataLoaderOptions<Sample, Batch>["sampler"] {
    return this.#options.sampler;
  }

  /** The option of that name: with it, batches may have any number of rows. */
  get collate(): DataLoaderOptions<Sample, Batch>["collate"] {
    return this.#options.collate;
  }

  /**
   * A loader of one rank's samples, in batches of the same size. Of the order of an epoch it has r, r + size, r + 2 size, ...: as many as
   * the other ranks, so that samples from the start of the order come again; `dropLast` leaves some out instead. `even: false` divides the
   * order into contiguous parts, which have each sample once. Ranks need equal generators.
   *
   * @throws OptError BAD_ARGUMENT
   * @example
   * const loader = new DataLoader(new TensorDataset(randn([10, 4])), { batchSize: 2 });
   * console.log(loader.shard({ rank: 1, size: 2 }).length); // 3, as on rank 0: of samples 1, 3, 5, 7, 9
   */
  shard({ rank, size }: { rank: number; size: number }, { even = true }: { even?: boolean } = {}): this {
    const isRank = isCount(rank) && isCount(size) && rank < size;
    check(
      isRank,
      "BAD_ARGUMENT",
      `${WHERE}.shard`,
      () => `needs a rank below the number of ranks, got ${show({ rank, size })}.`,
      "Pass a communicator.",
    );
    const begin = (samples: number, of: number) => Math.floor((samples * of) / size);
    const loader = new DataLoader(this.#dataset, this.#options);
    loader.#share = even
      ? { part: (samples) => [0, samples], rank, ranks: size }
      : { part: (samples) => [begin(samples, rank), begin(samples, rank + 1)], rank: 0, ranks: 1 };
    return loader as this;
  }

  /** Of an epoch, of all ranks that share its order. */
  get #wholeSamples(): number {
    const [begin, end] = this.#share.part(this.#options.sampler?.length ?? this.#dataset.length);
    return end - begin;
  }

  get #samples(): number {
    return this.#ownCount(this.#wholeSamples);
  }

  /** How many of so many samples are this rank's. */
  #ownCount(samples: number): number {
    const { ranks } = this.#share;
    return (this.dropLast ? Math.floor : Math.ceil)(samples / ranks);
  }

  /** @throws OptError NOT_SYNC if samples come later */
  *[Symbol.iterator](): IterableIterator<Batch> {
    const epoch = this.#begin();
    let batch: Batch | undefined;
    try {
      const count = this.#batches(epoch.order.length);
      while (epoch.served < count) {
        this.#free(batch);
        batch = undefined;
        const made = this.#make(epoch, epoch.served);
        if (isLater(made)) this.#freeLater(made);
        check(!isLater(made), "NOT_SYNC", WHERE, () => "the samples of this dataset come later.", "Write `for await`.");
        batch = made as Batch;
        epoch.served++;
        yield batch;
      }
      this.#end(epoch);
    } finally {
      this.#free(batch);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    const epoch = this.#begin();
    const count = this.#batches(epoch.order.length);
    const ahead: (Batch | Promise<Batch>)[] = [];
    let begun = epoch.served;
    let batch: Batch | undefined;
    try {
      while (epoch.served < count) {
        this.#free(batch);
        batch = undefined;
        while (begun < count && (ahead.length === 0 || (ahead.length <= this.#prefetch && isLater(ahead.at(-1)!)))) {
          ahead.push(this.#beginBatch(epoch, begun++));
        }
        batch = await ahead.shift()!;
        epoch.served++;
        yield batch;
      }
      this.#end(epoch);
    } finally {
      this.#free(batch);
      for (const unused of ahead) this.#freeLater(unused);
    }
  }

  /** Where the epoch stands whose loop was begun last: save it after the step of a batch. */
  stateDict(): DataLoaderState {
    const { generator } = this.#options;
    const drawn = generator && { generator: generator.stateDict() };
    const sampler = placedSampler(this.#options.sampler);
    const epoch = this.#epoch;
    if (sampler) {
      const place = epoch?.sampler
        ? sampler.stateAfter(epoch.sampler, epoch.served * this.batchSize)
        : sampler.stateDict();
      return { seed: null, taken: 0, samples: this.#dataset.length, ...drawn, sampler: place };
    }
    const samples = this.#wholeSamples;
    if (epoch === null) {
      const { seed, taken } = this.#resumed ?? { seed: null, taken: 0 };
      return { seed, taken, samples, ...drawn };
    }
    const taken = Math.min(samples, epoch.begun + epoch.served * this.batchSize * this.#share.ranks);
    return { seed: epoch.seed, taken, samples, ...drawn };
  }

  /**
   * The next loop goes on where this state was taken, with the same dataset: also on another number of ranks, and with batches of
   * another size. Each sample of the epoch comes once. @throws OptError BAD_STATE
   */
  loadStateDict(state: unknown): void {
    const { seed, taken, samples, generator, sampler } = (state ?? {}) as Partial<DataLoaderState>;
    const placed = placedSampler(this.#options.sampler);
    const own = placed ? this.#dataset.length : this.#wholeSamples;
    const isWord = seed === null || (isCount(seed) && seed < 2 ** 32);
    const isTaken = isCount(taken) && isCount(samples) && taken <= samples && (seed !== null || taken === 0);
    check(
      isWord && isTaken,
      "BAD_STATE",
      WHERE,
      () => `state must be { seed, taken, samples } of an epoch, got ${show(state)}.`,
      "Pass what stateDict() returned, for the same data.",
    );
    const isSame = seed === null && sampler === undefined ? true : samples === own;
    check(
      isSame,
      "BAD_STATE",
      WHERE,
      () => `the epoch to go on with had ${show(samples)} samples, this loader has ${own}.`,
      "Load it with the same data, or begin a new epoch.",
    );
    check(
      (sampler === undefined) === (placed === undefined),
      "BAD_STATE",
      WHERE,
      () =>
        `the state was taken ${placed ? "without" : "with"} such a sampler, and this loader has ${placed ? "one" : "none"}.`,
      "Pass the same options.",
    );
    const drawing = this.#options.generator;
    check(
      (generator === undefined) === (drawing === undefined),
      "BAD_STATE",
      WHERE,
      () =>
        `the state was taken ${drawing ? "without" : "with"} a generator, and this loader has ${drawing ? "one" : "none"}.`,
      "Pass the same options.",
    );
    if (drawing) new Generator(0).loadStateDict(generator!); // which throws before anything has changed
    placed?.loadStateDict(sampler);
    this.#isInEpoch = placed !== undefined;
    drawing?.loadStateDict(generator!);
    this.#epoch = null;
    this.#resumed = seed === null ? null : { seed: seed!, taken: taken! };
  }

  #begin(): Epoch {
    const { generator = defaultGenerator, shuffle, sampler } = this.#options;
    const resumed = this.#resumed;
    const seed = resumed?.seed ?? (shuffle ? generator.nextUint32() : 0);
    const count = this.#dataset.length;
    const order = sampler
      ? positionsOf(sampler, count)
      : shuffle
        ? new Generator(seed).permutation(count)
        : Int32Array.from({ length: count }, (_, i) => i);
    this.#resumed = null;
    const begun = resumed?.taken ?? 0;
    const state = placedSampler(sampler)?.stateDict();
    this.#epoch = { seed, begun, order: this.#ownOrder(order, begun), sampler: state, served: 0 };
    return this.#epoch;
  }

  /** This rank's samples behind the first `begun`. What is missing at the end comes from the beginning of the order, over and over. */
  #ownOrder(order: Int32Array, begun: number): Int32Array {
    const { rank, ranks, part } = this.#share;
    const own = order.subarray(...part(order.length));
    const at = (i: number) => {
      const position = begun + rank + i * ranks;
      return position < own.length ? position : (position - own.length) % own.length;
    };
    return Int32Array.from({ length: this.#ownCount(own.length - begun) }, (_, i) => own[at(i)]!);
  }

  #end(epoch: Epoch): void {
    if (this.#epoch !== epoch) return;
    this.#epoch = null;
    if (!this.#isInEpoch) return;
    // A sampler that was put into the middle of an epoch begins the next one at its start.
    this.#isInEpoch = false;
    const sampler = placedSampler(this.#options.sampler)!;
    sampler.loadStateDict({ ...sampler.stateDict(), taken: 0 });
  }

  #batches(samples: number): number {
    const whole = samples / this.batchSize;
    return this.dropLast ? Math.floor(whole) : Math.ceil(whole);
  }

  #make({ order }: Epoch, index: number): Batch | Promise<Batch> {
    const indices = order.subarray(index * this.batchSize, (index + 1) * this.batchSize);
    const { collate: own } = this.#options;
    const join = (samples: Sample[]) => {
      for (const tensor of tensorsOf(samples)) this.#given.add(tensor);
      return own!(samples);
    };
    return batchOf<Sample, Batch>(this.#dataset, indices, own && join);
  }

  /** A batch of a loop that waits: errors are thrown when its turn comes. */
  #beginBatch(epoch: Epoch, index: number): Batch | Promise<Batch> {
    try {
      const made = this.#make(epoch, index);
      return isLater(made) ? unheard(made) : made;
    } catch (error) {
      return unheard(Promise.reject(error));
    }
  }

  #free(batch: unknown): void {
    for (const tensor of tensorsOf(batch)) if (!this.#given.has(tensor)) tensor.dispose();
  }

  #freeLater(batch: unknown): void {
    Promise.resolve(batch).then(
      (made) => this.#free(made),
      () => {},
    );
  }
}

function placedSampler(sampler: unknown): PlacedSampler | undefined {
  return typeof (sampler as Partial<PlacedSampler> | undefined)?.stateAfter === "function"
    ? (sampler as PlacedSampler)
    : undefined;
}

function checkSampler(sampler: unknown, shuffle: boolean): void {
  const { length, [Symbol.iterator]: iterator } = (sampler ?? {}) as { length?: unknown; [Symbol.iterator]?: unknown };
  const isSampler = typeof iterator === "function" && isCount(length);
  check(
    isSampler,
    "BAD_ARGUMENT",
    WHERE,
    () => `sampler must be iterable and have a length, got ${show(sampler)}.`,
    "For example an array of positions.",
  );
  check(
    !shuffle,
    "BAD_ARGUMENT",
    WHERE,
    () => "there must be a sampler or shuffle, got both.",
    "The sampler gives the order.",
  );
}

function positionsOf(sampler: Iterable<number> & { readonly length: number }, count: number): Int32Array {
  const { length } = sampler;
  const positions: number[] = [];
  for (const position of sampler) {
    checkIndex(WHERE, position, count);
    if (positions.push(position) > length) break; // it may never end
  }
  check(
    positions.length === length,
    "BAD_ARGUMENT",
    WHERE,
    () =>
      `a sampler of length ${length} must give as many positions, got ${positions.length > length ? "more" : positions.length}.`,
    "Its length is that of one epoch.",
  );
  return Int32Array.from(positions);
}

/** Every tensor of a batch or of samples. */
function* tensorsOf(batch: unknown): Iterable<Tensor> {
  if (batch instanceof Tensor) yield batch;
  else if (Array.isArray(batch)) for (const field of batch) yield* tensorsOf(field);
  else if (typeof batch === "object" && batch !== null && Object.getPrototypeOf(batch) === Object.prototype) {
    for (const field of Object.values(batch)) yield* tensorsOf(field);
  }
}
