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
import { batchOf, isLater } from "./batch";
import type { Collated } from "./collate";
import { type BatchedDataset, checkDataset, checkIndex, type Dataset } from "./dataset";

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
  /** Makes a batch of samples. By default `collate`, or what the dataset itself does. */
  collate?: (samples: Sample[]) => Batch | Promise<Batch>;
}

/** Plain JSON: where an epoch stands. */
export interface DataLoaderState {
  /** Of the order of the epoch that goes on; null between two epochs. */
  seed: number | null;
  /** Batches of it that were handed out. */
  served: number;
  generator?: ReturnType<Generator["stateDict"]>;
}

/** An epoch that is under way. */
interface Epoch {
  readonly seed: number;
  readonly order: Int32Array;
  served: number;
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
  private readonly dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[];
  private readonly options: DataLoaderOptions<Sample, Batch>;
  private readonly prefetch: number;
  private epoch: Epoch | null = null;
  /** Loaded: where the next epoch begins. */
  private resumed: { readonly seed: number; readonly served: number } | null = null;

  /** @throws OptError BAD_ARGUMENT */
  constructor(
    dataset: BatchedDataset<Sample, Batch> | Dataset<Sample> | readonly Sample[],
    options: DataLoaderOptions<Sample, Batch> = {},
  ) {
    checkDataset(WHERE, dataset);
    checkOptions(WHERE, options, KINDS);
    const { batchSize = 1, prefetch = 2, dropLast = false, generator, sampler, shuffle = false } = options;
    const isWhole = Number.isInteger(batchSize) && batchSize >= 1;
    check(
      isWhole,
      "BAD_ARGUMENT",
      WHERE,
      () => `batchSize must be an integer >= 1, got ${show(batchSize)}.`,
      "For example 32.",
    );
    const isCount = Number.isInteger(prefetch) && prefetch >= 0;
    check(
      isCount,
      "BAD_ARGUMENT",
      WHERE,
      () => `prefetch must be an integer >= 0, got ${show(prefetch)}.`,
      "For example 2.",
    );
    if (generator !== undefined) checkGenerator(WHERE, generator);
    if (sampler !== undefined) checkSampler(sampler, shuffle);
    this.dataset = dataset;
    this.options = { ...options };
    this.batchSize = batchSize;
    this.prefetch = prefetch;
    this.dropLast = dropLast;
  }

  /** Batches of an epoch. */
  get length(): number {
    const samples = this.options.sampler?.length ?? this.dataset.length;
    return this.dropLast ? Math.floor(samples / this.batchSize) : Math.ceil(samples / this.batchSize);
  }

  /** @throws OptError NOT_SYNC where samples come later */
  *[Symbol.iterator](): IterableIterator<Batch> {
    const epoch = this.begin();
    let batch: Batch | undefined;
    try {
      while (epoch.served < this.batches(epoch)) {
        free(batch);
        batch = undefined;
        const made = this.make(epoch, epoch.served);
        if (isLater(made)) made.then(free, () => {});
        check(!isLater(made), "NOT_SYNC", WHERE, () => "the samples of this dataset come later.", "Write `for await`.");
        batch = made as Batch;
        epoch.served++;
        yield batch;
      }
      this.end(epoch);
    } finally {
      free(batch);
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Batch, void, undefined> {
    const epoch = this.begin();
    const count = this.batches(epoch);
    const ahead: (Batch | Promise<Batch>)[] = [];
    let begun = epoch.served;
    let batch: Batch | undefined;
    try {
      while (epoch.served < count) {
        free(batch);
        batch = undefined;
        while (begun < count && (ahead.length === 0 || (ahead.length <= this.prefetch && isLater(ahead.at(-1)!)))) {
          ahead.push(this.make(epoch, begun++));
        }
        batch = await ahead.shift()!;
        epoch.served++;
        yield batch;
      }
      this.end(epoch);
    } finally {
      free(batch);
      for (const unused of ahead) Promise.resolve(unused).then(free, () => {});
    }
  }

  /** Where the epoch stands whose loop was begun last: save it after the step of a batch. */
  stateDict(): DataLoaderState {
    const { generator } = this.options;
    const { seed, served } = this.epoch ?? this.resumed ?? { seed: null, served: 0 };
    return { seed, served, ...(generator && { generator: generator.stateDict() }) };
  }

  /** The next loop goes on where this state was taken, with the same dataset and options. @throws OptError BAD_STATE */
  loadStateDict(state: DataLoaderState): void {
    const { seed, served, generator } = (state ?? {}) as Partial<DataLoaderState>;
    const isWord = seed === null || (Number.isInteger(seed) && seed! >= 0 && seed! < 2 ** 32);
    const isServed =
      Number.isInteger(served) && served! >= 0 && served! <= this.length && (seed !== null || served === 0);
    const problem = () => `state must be { seed, served } of an epoch of ${this.length} batches, got ${show(state)}.`;
    check(isWord && isServed, "BAD_STATE", WHERE, problem, "Pass what stateDict() returned, for the same data.");
    const own = this.options.generator;
    const fits = (generator === undefined) === (own === undefined);
    const missing = () =>
      `the state was taken ${own ? "without" : "with"} a generator, and this loader has ${own ? "one" : "none"}.`;
    check(fits, "BAD_STATE", WHERE, missing, "Pass the same options.");
    if (own) own.loadStateDict(generator!);
    this.epoch = null;
    this.resumed = seed === null ? null : { seed: seed!, served: served! };
  }

  private begin(): Epoch {
    const { generator = defaultGenerator, shuffle, sampler } = this.options;
    const resumed = this.resumed;
    this.resumed = null;
    const seed = resumed?.seed ?? (shuffle ? generator.nextUint32() : 0);
    const count = this.dataset.length;
    const order = sampler
      ? positionsOf(sampler, count)
      : shuffle
        ? new Generator(seed).permutation(count)
        : Int32Array.from({ length: count }, (_, i) => i);
    this.epoch = { seed, order, served: resumed?.served ?? 0 };
    return this.epoch;
  }

  private end(epoch: Epoch): void {
    if (this.epoch === epoch) this.epoch = null;
  }

  private batches({ order }: Epoch): number {
    const whole = order.length / this.batchSize;
    return this.dropLast ? Math.floor(whole) : Math.ceil(whole);
  }

  private make({ order }: Epoch, index: number): Batch | Promise<Batch> {
    const indices = order.subarray(index * this.batchSize, (index + 1) * this.batchSize);
    return batchOf<Sample, Batch>(this.dataset, indices, this.options.collate);
  }
}

function checkSampler(sampler: unknown, shuffle: boolean): void {
  const { length, [Symbol.iterator]: iterator } = (sampler ?? {}) as { length?: unknown; [Symbol.iterator]?: unknown };
  const isSampler = typeof iterator === "function" && Number.isInteger(length);
  const problem = () => `sampler must be iterable and have a length, got ${show(sampler)}.`;
  check(isSampler, "BAD_ARGUMENT", WHERE, problem, "For example an array of positions.");
  check(
    !shuffle,
    "BAD_ARGUMENT",
    WHERE,
    () => "there must be a sampler or shuffle, got both.",
    "The sampler gives the order.",
  );
}

function positionsOf(sampler: Iterable<number>, count: number): Int32Array {
  const positions = [...sampler];
  for (const position of positions) checkIndex(WHERE, position, count);
  return Int32Array.from(positions);
}

/** Disposes every tensor of a batch. */
function free(batch: unknown): void {
  if (batch instanceof Tensor) batch.dispose();
  else if (Array.isArray(batch)) for (const field of batch) free(field);
  else if (typeof batch === "object" && batch !== null && Object.getPrototypeOf(batch) === Object.prototype) {
    for (const field of Object.values(batch)) free(field);
  }
}
