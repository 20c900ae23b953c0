/** The same model on every rank, each with its own samples: gradients are averaged while backward still computes others. */
import { check, checkOptions, onGradient, show, type Tensor } from "@opt/core";
import { Communicator } from "../communicator/communicator";
import { allReduce, allReduceByEngine } from "../communicator/reduce";
import { sampleOf } from "../communicator/sample";
import { axisOf } from "../placement/axis";
import { agree } from "./agreement";
import { BUCKET_BYTES, Bucket, bucketsOf } from "./bucket";
import { Buffers } from "./buffers";
import { averagedBy, checkAveraged, linesOf, type NamedParameter, type Trainable, tensorsOf } from "./parameters";
import { Silence } from "./silence";

const WHERE = "DataParallel";
const ALIKE =
  "Between sync() and the next backward all ranks do the same to the parameters: the same optimizer with the same options and groups.";
/** Milliseconds of backward after which sums go on. */
const POLL_AFTER = 1;
/** Steps after which the model's parameters are listed again, where no gradient has stayed away since: that takes longer than all else that is looked at. */
const LIST_EVERY = 64;

export interface DataParallelOptions {
  /** How many bytes of gradients travel together. No bit depends on it. Default 25 MiB; the first bucket has at most 1 MiB. */
  readonly bucketBytes?: number;
  /** "ordered" adds in the order of the ranks; "engine" leaves order and speed to the engine's own all-reduce. Default "ordered". */
  readonly reduction?: "ordered" | "engine";
  /** `sync` gives all ranks the buffers (BatchNorm's running statistics) of rank 0, as PyTorch's `broadcast_buffers`. Default true. */
  readonly broadcastBuffers?: boolean;
}

/**
 * Averages gradients over ranks: added in the order of the ranks, then divided once by `divisor`. So W ranks equal one process that adds
 * the gradients of the same W micro-batches and divides their sum by W, bit for bit. Buckets leave during backward; after `await sync()`
 * each `.grad` holds the average. All ranks begin with equal parameters: the first `sync` compares them.
 *
 * Buffers that a forward wrote to are those of rank 0 after `sync` (of the first rank that had samples), so each forward begins with the
 * same ones on all ranks; a model has buffers if it has `namedBuffers`.
 *
 * Parameters that a rank did not use count as zeros; those that no rank used keep their gradient. All ranks call `sync` once a step,
 * also those without samples.
 *
 * @example
 * const communicator = await connect();
 * const parallel = new DataParallel(model, communicator);
 * crossEntropy(parallel.forward(x), y).backward();
 * await parallel.sync();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class DataParallel<Model extends Trainable> {
  readonly module: Model;
  readonly communicator: Communicator;
  /** By what sums of gradients are divided, the same number on all ranks: set it before the backward that leaves. Default: the number of ranks. */
  divisor: number;
  /** Rejects with BAD_STATE where ranks differ in names, shapes, dtypes, the order or the values of parameters, or in options. `sync` waits for it. */
  readonly ready: Promise<void>;
  /** Whether every rank's parameters can be looked at in each step. */
  readonly #areReadable: Promise<boolean>;
  #isReadable = false;
  /** Of the step that has begun: what the ranks' weights are told apart by. */
  #weights: string | undefined;
  #step = 0;
  #isSyncing = false;
  readonly #buckets: Bucket[];
  readonly #buffers: Buffers;
  /** What required no gradient at first. */
  readonly #frozen: readonly NamedParameter[];
  /** How many parameters had no gradient in the last sync: those that were replaced get none any more. */
  #missing = 0;
  readonly #reduction: "ordered" | "engine";
  readonly #removers: (() => void)[];
  /** How many buckets have left: they do so in one order on all ranks. */
  #left = 0;
  readonly #silence = new Silence();
  /** What was rejected in a backward whose error the program may have caught. */
  #misuse: unknown;
  /** When it was last looked what has come of those that left. */
  #polled = 0;

  /** @throws OptError BAD_ARGUMENT; BAD_STATE if another one averages the model; DEVICE_MISMATCH if parameters lie on several devices; DUPLICATE; UNSUPPORTED for complex ones */
  constructor(module: Model, communicator: Communicator, options: DataParallelOptions = {}) {
    checkOptions(WHERE, options, { bucketBytes: "number", reduction: "string", broadcastBuffers: "boolean" });
    const { bucketBytes = BUCKET_BYTES, reduction = "ordered", broadcastBuffers = true } = options;
    const isModel = typeof module?.forward === "function" && typeof module.namedParameters === "function";
    check(isModel, "BAD_ARGUMENT", WHERE, () => `needs a model with forward and namedParameters, got ${show(module)}.`);
    const isOurs = communicator instanceof Communicator;
    check(isOurs, "BAD_ARGUMENT", WHERE, () => `needs a communicator, got ${show(communicator)}.`, "await connect()");
    check(bucketBytes > 0, "BAD_ARGUMENT", WHERE, () => `bucketBytes must be above 0, got ${show(bucketBytes)}.`);
    const isKnown = reduction === "ordered" || reduction === "engine";
    check(isKnown, "BAD_ARGUMENT", WHERE, () => `reduction must be "ordered" or "engine", got ${show(reduction)}.`);
    const { trainable, frozen, buffers: all } = tensorsOf(WHERE, module);
    this.#frozen = [...frozen, ...all];
    const buffers = broadcastBuffers ? all : [];
    for (const { tensor } of trainable) {
      averagedBy.set(tensor, this);
      tensor.averagedOver = axisOf(communicator);
    }
    this.module = module;
    this.communicator = communicator;
    this.divisor = communicator.size;
    this.#reduction = reduction;
    this.#buckets = bucketsOf(trainable, bucketBytes).map((list) => new Bucket(list));
    this.#buffers = new Buffers(buffers);
    const { group } = communicator;
    const isAlone = communicator.size === 1;
    const settings = `bucketBytes ${bucketBytes}, reduction ${reduction}, broadcastBuffers ${broadcastBuffers}`;
    const isReadable = sampleOf(this.#tensors(), 0) !== undefined;
    this.#areReadable = isAlone
      ? Promise.resolve(false)
      : agree(group, WHERE, linesOf([...trainable, ...frozen, ...buffers], settings), isReadable);
    this.ready = this.#areReadable.then(() => {});
    this.ready.catch(() => {}); // sync() throws it
    this.#removers = isAlone
      ? []
      : this.#buckets.flatMap((bucket) =>
          bucket.parameters.map((parameter) => onGradient(parameter.tensor, () => this.#reached(bucket, parameter))),
        );
  }

  /** The model's. */
  forward(...inputs: Parameters<Model["forward"]>): ReturnType<Model["forward"]> {
    return this.module.forward(...inputs) as ReturnType<Model["forward"]>;
  }

  /**
   * Runs `body`, which may be async, in which gradients of further micro-batches accumulate and nothing leaves; the backward after it averages their sums: set `divisor` to divide
   * by their number, too.
   *
   * @example
   * const parallel = new DataParallel(new Linear(4, 3), await connect());
   * parallel.noSync(() => crossEntropy(parallel.forward(x), y).backward());
   * crossEntropy(parallel.forward(x), y).backward();
   * await parallel.sync();
   *
   * @throws OptError BAD_ARGUMENT unless `body` is a function
   */
  noSync<Result>(body: () => Result): Result {
    return this.#silence.during(body);
  }

  /**
   * Waits until each `.grad` holds the average over the ranks: between backward and the step, once on every rank.
   *
   * @throws OptError BAD_STATE if ranks differ, see `ready`, and if the model has other parameters than at first (all are listed in the
   * first sync, each 64th, and if gradients stay away); CHANGED if a gradient was clipped, cleared or replaced after backward;
   * UNSUPPORTED for row-sparse gradients; IO, MISSING, DISPOSED
   */
  async sync(): Promise<void> {
    if (this.communicator.size === 1) return;
    check(
      !this.#isSyncing,
      "BAD_STATE",
      WHERE,
      () => "sync() came while another one is under way.",
      "It takes time: await sync(), once a step.",
    );
    this.#isSyncing = true;
    try {
      await this.#sync();
    } finally {
      this.#isSyncing = false;
      this.#left = 0;
      this.#weights = undefined;
      this.#step++;
    }
  }

  async #sync(): Promise<void> {
    const touched = this.#touched();
    for (; this.#left < this.#buckets.length; this.#left++) this.#leave(this.#buckets[this.#left]!);
    const what = `sync of step ${this.#step + 1}`;
    const shared = this.#buffers.list.length > 0 ? [this.#buffers.share(this.communicator.group, WHERE, what)] : [];
    const arrived = this.#buckets.map((bucket) => bucket.arrive());
    const arrivals = await Promise.allSettled([this.ready, ...arrived, ...shared]);
    this.#isReadable = await this.#areReadable.catch(() => false);
    if (touched !== undefined) throw touched;
    const failed = arrivals.find((arrival) => arrival.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Leaves the model alone from now on. */
  dispose(): void {
    for (const remove of this.#removers.splice(0)) remove();
    for (const tensor of this.#tensors()) {
      if (averagedBy.get(tensor) !== this) continue;
      averagedBy.delete(tensor);
      delete tensor.averagedOver;
    }
  }

  /** At the first backward of a step all ranks have the same weights, whatever is done to them until it ends. */
  #look(): void {
    if (this.#isReadable) this.#weights ??= sampleOf(this.#tensors(), this.#step);
  }

  #tensors(): Tensor[] {
    return this.#buckets.flatMap(({ parameters }) => parameters.map(({ tensor }) => tensor));
  }

  /** What was done to gradients that have left. The other ranks wait for them all the same. */
  #touched(): unknown {
    const misuse = this.#misuse;
    this.#misuse = undefined;
    if (misuse !== undefined) return misuse;
    try {
      this.#checkComplete();
      for (const bucket of this.#buckets) bucket.checkUntouched(WHERE);
    } catch (error) {
      return error;
    }
    return undefined;
  }

  /** Each parameter that the model has by now is averaged. */
  #checkComplete(): void {
    checkAveraged(WHERE, this.#frozen, this);
    const missing = this.#tensors().filter(({ grad }) => grad === null).length;
    const isSuspect = missing > this.#missing;
    this.#missing = missing;
    if (this.#step % LIST_EVERY !== 0 && !isSuspect) return;
    const present = [...this.module.namedParameters()].map(([name, tensor]) => ({ name, tensor }));
    checkAveraged(WHERE, present, this);
  }

  #reached(bucket: Bucket, { name, tensor }: NamedParameter): void {
    const problem = () => `backward reached ${name} a second time before sync().`;
    const advice =
      "Await sync() after each backward; put those whose gradients accumulate into noSync, before the last.";
    try {
      check(!bucket.hasLeft && !bucket.ready.has(tensor), "BAD_STATE", WHERE, problem, advice);
    } catch (error) {
      this.#misuse ??= error;
      throw error;
    }
    this.#look();
    if (this.#silence.isOn) return;
    bucket.ready.add(tensor);
    for (; this.#buckets[this.#left]?.isReady; this.#left++) this.#leave(this.#buckets[this.#left]!);
    if (performance.now() - this.#polled < POLL_AFTER) return;
    this.communicator.group.poll();
    this.#polled = performance.now();
  }

  #leave(bucket: Bucket): void {
    const { group } = this.communicator;
    const average = this.#reduction === "engine" ? allReduceByEngine : allReduce;
    this.#look();
    const { divisor } = this;
    const alike = [
      ...(this.#weights === undefined ? [] : [`weights ${this.#weights}`]),
      ...(divisor === group.size ? [] : [`divisor ${divisor}`]),
    ];
    const what = `sync of step ${this.#step + 1}, bucket ${this.#left + 1} of ${this.#buckets.length}`;
    bucket.leave(WHERE, (flat) => {
      const size = flat.reduce((sum, part) => sum + part.size, 0);
      const heading = { what, dtype: flat[0]!.dtype, shape: `[${size}]`, more: alike, advice: ALIKE };
      return average(group, WHERE, flat, "sum", heading, divisor);
    });
  }
}
