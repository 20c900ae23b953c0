/** Shares calls out between the calling thread and the workers: fork, work, join. */
import { OptError } from "@opt/core";
import type { Split } from "../kernel";
import * as control from "./control";
import { startWorker, type WorkerThread } from "./start";

/** Polls before the calling thread sleeps until the last worker is done. Parts end at about the same time. */
const POLLS = 10_000;

/** Elements or multiply-adds below which sharing costs more than it saves: waking workers takes some 35 microseconds. */
const WORK_WORTH_SHARING = 1 << 16;
const WORK_WORTH_WAKING = 1 << 18;
/** Work that is worth a part of its own: parts beyond one per thread even out threads that are held up. */
const WORK_PER_PART = 1 << 19;
const PARTS_PER_THREAD = 4;

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
  #workers: readonly WorkerThread[] = [];
  #generation = 0;

  private constructor(memory: WebAssembly.Memory) {
    const numbers = control.ARGUMENTS + control.MAXIMUM_ARGUMENTS;
    this.#words = new Int32Array(memory.buffer, 0, 2 * numbers);
    this.#numbers = new Float64Array(memory.buffer, 0, numbers);
    this.#mayWait = mayWait();
  }

  /** Starts up to `threads - 1` workers over shared memory. */
  static async start(memory: WebAssembly.Memory, threads: number, probe: Uint8Array): Promise<ThreadPool> {
    const pool = new ThreadPool(memory);
    pool.#words[control.OPEN] = 1;
    const starts = Array.from({ length: threads - 1 }, () => startWorker({ memory, probe }));
    pool.#workers = (await Promise.all(starts)).filter((worker) => worker !== undefined);
    return pool;
  }

  /** The calling thread and the workers. */
  get threads(): number {
    return this.#workers.length + 1;
  }

  /** In how many parts a call is best cut. */
  parts({ range, grain = 1, work }: Split): number {
    const { threads } = this;
    const asleep = Atomics.load(this.#words, control.SLEEPING) > 0;
    if (threads === 1 || work < (asleep ? WORK_WORTH_WAKING : WORK_WORTH_SHARING)) return 1;
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
    this.#generation = (this.#generation + 1) & 0x7fffff;
    words[control.FAILED] = 0;
    Atomics.store(words, control.PENDING, parts);
    Atomics.store(words, control.TICKET, (this.#generation << 8) | parts);
    if (Atomics.load(words, control.SLEEPING) > 0) Atomics.notify(words, control.TICKET, parts - 1);
    const units = Math.ceil(range / grain);
    try {
      for (let part = this.#claim(); part >= 0; part = this.#claim()) {
        const start = Math.floor((part * units) / parts) * grain;
        const end = Math.min(range, Math.floor(((part + 1) * units) / parts) * grain);
        try {
          entry.call(start, end, ...args);
        } finally {
          Atomics.sub(words, control.PENDING, 1);
        }
      }
    } finally {
      this.#join();
    }
    if (Atomics.load(words, control.FAILED) !== 0) {
      throw new OptError(
        "INTERNAL",
        "wasm",
        "a worker thread failed in its part of a launch.",
        "Please report this bug.",
      );
    }
  }

  close(): void {
    Atomics.store(this.#words, control.OPEN, 0);
    for (const worker of this.#workers) worker.terminate();
    this.#workers = [];
  }

  /** A part of the present call, or -1 when all are claimed. */
  #claim(): number {
    for (;;) {
      const ticket = Atomics.load(this.#words, control.TICKET);
      const remaining = ticket & control.REMAINING_MASK;
      if (remaining === 0) return -1;
      if (Atomics.compareExchange(this.#words, control.TICKET, ticket, ticket - 1) === ticket) return remaining - 1;
    }
  }

  /**
   * Waits for parts that workers have claimed. Parts nobody claimed were done by the calling thread, so the wait is bounded by one part.
   * A page's main thread may not sleep and polls on.
   */
  #join(): void {
    const words = this.#words;
    for (let polls = 0; ; polls++) {
      const pending = Atomics.load(words, control.PENDING);
      if (pending === 0) return;
      if (polls >= POLLS && this.#mayWait) Atomics.wait(words, control.PENDING, pending);
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
