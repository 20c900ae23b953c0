/** Shares calls out between the calling thread and the workers: fork, work, join. */
import { OptError } from "@opt/core";
import type { Split } from "../kernel";
import * as control from "./control";
import { startWorker, type WorkerThread } from "./start";

/** Polls before the calling thread sleeps until the last worker is done. Parts end at about the same time. */
const POLLS = 10_000;

/**
 * Calls of less work than `WORK_LONG` that are not shared after one in which we waited longer than we worked, because the worker had no
 * processor: few after the first, twice as many each time that it happens again at once.
 */
const WORK_LONG = 1 << 22;
const FEWEST_ALONE = 4;
const MOST_ALONE = 512;
/** Milliseconds that a worker may begin later without a reason. */
const WAKING = 0.1;
/**
 * Milliseconds after which the calling thread looks whether there are parts that nobody takes. Each time that it goes to sleep again, its
 * processor may take over a worker that waits for another one.
 */
const LOOK_AFTER = 1;
/** As many polls take about as long. */
const LOOK_POLLS = 20 * POLLS;
/**
 * Looks, of a millisecond, that a part may take: any, and for each unit of work on the slowest machine. No clock: it goes on while the
 * process is stopped and none of its threads can work.
 */
const PART_PATIENCE = 10_000;
const WORK_PATIENCE = 1e-4;

/** Elements below which sharing costs more than it saves: waking workers takes some 35 microseconds. */
const WORK_WORTH_SHARING = 1 << 16;
const WORK_WORTH_WAKING = 1 << 18;
/** Work that is worth being claimed by itself: parts beyond one per thread even out threads that are held up. */
const WORK_PER_PART = 1 << 16;
const PARTS_PER_THREAD = 64;

/** An exported function, and where workers find it. */
export interface Entry {
  readonly call: (start: number, end: number, ...args: readonly number[]) => void;
  readonly index: number;
  readonly moduleAddress: number;
  readonly moduleBytes: number;
}

export class ThreadPool {
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #mayWait: boolean;
  #workers: WorkerThread[] = [];
  /** Short calls yet to come that are not shared, and how many it will be the next time. */
  #alone = 0;
  #nextAlone = FEWEST_ALONE;

  private constructor(
    memory: WebAssembly.Memory,
    private readonly patience: number,
  ) {
    const numbers = control.ARGUMENTS + control.MAXIMUM_ARGUMENTS;
    this.#words = new Int32Array(memory.buffer, 0, 2 * numbers);
    this.#numbers = new Float64Array(memory.buffer, 0, numbers);
    this.#mayWait = mayWait();
  }

  /** Starts up to `threads - 1` workers over shared memory. */
  static async start(
    memory: WebAssembly.Memory,
    threads: number,
    probe: Uint8Array,
    patience = PART_PATIENCE,
  ): Promise<ThreadPool> {
    const pool = new ThreadPool(memory, patience);
    pool.#words[control.OPEN] = 1;
    await Promise.all(
      Array.from({ length: threads - 1 }, async () => {
        let worker: WorkerThread | undefined;
        worker = await startWorker({ memory, probe }, () => pool.#forget(worker));
        if (worker !== undefined) pool.#workers.push(worker);
      }),
    );
    return pool;
  }

  #forget(worker: WorkerThread | undefined): void {
    this.#workers = this.#workers.filter((other) => other !== worker);
  }

  /** The calling thread and the workers. */
  get threads(): number {
    return this.#workers.length + 1;
  }

  /** In how many parts a call is best cut: threads claim several at once. */
  parts({ range, grain = 1, work }: Split): number {
    const { threads } = this;
    const asleep = Atomics.load(this.#words, control.SLEEPING) > 0;
    if (threads === 1 || work < (asleep ? WORK_WORTH_WAKING : WORK_WORTH_SHARING)) return 1;
    if (work < WORK_LONG && this.#alone > 0) {
      this.#alone--;
      return 1;
    }
    const wanted = Math.min(Math.max(threads, Math.floor(work / WORK_PER_PART)), threads * PARTS_PER_THREAD);
    return Math.min(wanted, Math.ceil(range / grain), control.MAXIMUM_PARTS);
  }

  /** Calls the entry on all parts and returns when all are done. */
  run(entry: Entry, split: Split, parts: number, args: readonly number[]): void {
    const words = this.#words;
    const { range, grain = 1 } = split;
    words[control.MODULE_ADDRESS] = entry.moduleAddress;
    words[control.MODULE_BYTES] = entry.moduleBytes;
    words[control.ENTRY] = entry.index;
    words[control.PARTS] = parts;
    words[control.RANGE] = range;
    words[control.GRAIN] = grain;
    words[control.ARGUMENT_COUNT] = args.length;
    this.#numbers.set(args, control.ARGUMENTS);
    words[control.FAILED] = 0;
    words[control.SHARES] = 2 * this.threads;
    Atomics.store(words, control.PENDING, parts);
    Atomics.store(words, control.TICKET, parts << 16);
    const asleep = Atomics.load(words, control.SLEEPING) > 0;
    if (asleep) Atomics.notify(words, control.TICKET, parts - 1);
    const begun = performance.now();
    const units = Math.ceil(range / grain);
    let cause: unknown; // of what failed on this thread
    const takeParts = () => {
      for (;;) {
        const ticket = Atomics.load(words, control.TICKET);
        const first = ticket & 0xffff;
        const left = (ticket >>> 16) - first;
        if (left === 0) return;
        const taken = Math.ceil(left / words[control.SHARES]!);
        if (Atomics.compareExchange(words, control.TICKET, ticket, ticket + taken) !== ticket) continue;
        const start = Math.floor((first * units) / parts) * grain;
        const end = Math.min(range, Math.floor(((first + taken) * units) / parts) * grain);
        try {
          entry.call(start, end, ...args);
        } catch (error) {
          Atomics.store(words, control.FAILED, 1);
          cause ??= error;
        } finally {
          Atomics.sub(words, control.PENDING, taken);
        }
      }
    };
    takeParts();
    const done = performance.now();
    this.#join(takeParts, this.patience + WORK_PATIENCE * split.work);
    const hasWaited = !asleep && performance.now() - done > done - begun + WAKING;
    if (Atomics.load(words, control.FAILED) !== 0) {
      throw new OptError("INTERNAL", "wasm", "a thread failed in its part of a launch.", "Please report this bug.", {
        cause,
      });
    }
    if (hasWaited) this.#alone = this.#nextAlone;
    this.#nextAlone = hasWaited ? Math.min(2 * this.#nextAlone, MOST_ALONE) : FEWEST_ALONE;
  }

  close(): void {
    Atomics.store(this.#words, control.OPEN, 0);
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
  }

  /**
   * Waits for parts that workers have claimed, or shall. Parts that nobody claims are done here.
   * A page's main thread may not sleep and polls on.
   *
   * @throws OptError INTERNAL if no part ends for so long; from then on the calling thread computes alone
   */
  #join(takeParts: () => void, patience: number): void {
    const words = this.#words;
    let looks = 0;
    let last = -1;
    for (let polls = 0; ; polls++) {
      const pending = Atomics.load(words, control.PENDING);
      if (pending === 0) return;
      const isEarly = this.#mayWait
        ? polls < POLLS || Atomics.wait(words, control.PENDING, pending, LOOK_AFTER) !== "timed-out"
        : polls % LOOK_POLLS > 0;
      if (isEarly) continue;
      takeParts();
      looks = pending === last ? looks + 1 : 0;
      last = pending;
      if (looks > patience) {
        this.close();
        throw new OptError(
          "INTERNAL",
          "wasm",
          "a worker thread ended in its part of a launch, whose results are lost.",
          "One thread computes from now on.",
        );
      }
    }
  }
}

/** Browsers forbid their main thread to sleep. */
function mayWait(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0);
    return true;
  } catch {
    return false;
  }
}
