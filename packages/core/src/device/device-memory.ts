/** The memory of one device: what lives, what compiled functions still use after its owners have let it go, and what runs out. */

import type { Backend } from "../backend/backend";
import type { Memory } from "../backend/memory";
import { OptError } from "../errors/errors";
import { collectGarbage } from "../host/garbage";
import type { TypedArray } from "../values/dtype";
import { allocations } from "./allocation-trace";
import type { WrappedArrays } from "./overlap";

/** Growth that is worth a collection, which takes milliseconds: as much as lives, within these bounds. */
const PRESSURE = 2 ** 28;
const MOST_PRESSURE = 2 ** 30;

export class DeviceMemory {
  /** Of the tensors that live, and how many they are. */
  bytes = 0;
  tensors = 0;
  /** Memory that compiled functions use, by how many of them. */
  readonly #pins = new Map<Memory, number>();
  /** Pinned memory that its owners have freed. */
  readonly #orphans = new Set<Memory>();

  /** Undefined until an array is wrapped: launches then need not look. */
  wrapped: WrappedArrays | undefined;

  /** What lived at the last collection, without what it gave back. Steps that free what they make never come above it again. */
  #settled = 0;
  /** Something was collected since the program last gave way. */
  #isOwed = false;
  #opened: Backend | undefined;

  constructor(
    private readonly name: string,
    backend: Backend,
  ) {
    this.#opened = backend;
  }

  get isClosed(): boolean {
    return this.#opened === undefined;
  }

  /** @throws OptError DISPOSED once closed */
  get backend(): Backend {
    if (this.#opened !== undefined) return this.#opened;
    const advice = `await init("${this.name}") opens it again.`;
    throw new OptError("DISPOSED", this.name, "the device was closed, and its tensors with it.", advice);
  }

  /** From now on memory is counted, but there is nobody to give it back to. */
  close(): void {
    this.#opened = undefined;
  }

  /**
   * @param reserved what gets the room
   * @throws OptError OUT_OF_MEMORY with the count of tensors that live, and where the largest was made if that is traced
   */
  allocate(bytes: number, reserved?: Memory): Memory {
    const { backend } = this;
    const enough = Math.min(Math.max(PRESSURE, this.#settled), MOST_PRESSURE);
    if (this.bytes - this.#settled > enough) this.#collect();
    let memory: Memory;
    try {
      memory = backend.allocate(bytes);
      if (reserved !== undefined) memory = Object.assign(reserved, memory);
    } catch (error) {
      throw (error as { code?: string }).code === "OUT_OF_MEMORY" ? this.#exhausted(error as OptError) : error;
    }
    this.bytes += memory.bytes;
    allocations.trace?.made(memory, this);
    return memory;
  }

  /** Dropped tensors come back when the program next gives way: until then all counts as alive. */
  #collect(): void {
    collectGarbage();
    this.#settled = this.bytes;
    this.#isOwed = true;
  }

  /** Dropped memory came back. */
  settle(): void {
    this.#settled = Math.min(this.#settled, this.bytes);
  }

  /** Gives way once for what was collected: a loop that awaits only what is settled already is one task, in which no finalizer runs. */
  async relieve<T>(work: Promise<T>): Promise<T> {
    const result = await work;
    if (this.#isOwed) await giveWay();
    this.#isOwed = false;
    return result;
  }

  #exhausted(error: OptError): OptError {
    this.#collect();
    const by = allocations.trace?.largest(this) ?? "traceAllocations() before would say who made the largest.";
    const held = `${this.tensors} tensors live on ${this.name}, ${this.bytes} bytes; dropped ones return at await device.sync().`;
    const words = error.message.slice(error.message.indexOf("]") + 2);
    return new OptError("OUT_OF_MEMORY", error.where, words, `${held} ${by}`, { cause: error });
  }

  /** Memory over the caller's own array, where the device can work in it. */
  wrap(array: TypedArray): Memory | undefined {
    const memory = this.backend.wrap?.(array);
    if (memory === undefined) return undefined;
    this.bytes += memory.bytes;
    this.wrapped ??= new WeakMap();
    this.wrapped.set(memory, array);
    return memory;
  }

  /** Gives memory back, as soon as no compiled function uses it. */
  free(memory: Memory): void {
    if (this.#pins.has(memory)) {
      this.#orphans.add(memory);
      return;
    }
    this.bytes -= memory.bytes;
    allocations.trace?.freed(memory);
    this.#opened?.free(memory);
  }

  pin(memory: Memory): void {
    this.#pins.set(memory, (this.#pins.get(memory) ?? 0) + 1);
  }

  unpin(memory: Memory): void {
    const others = this.#pins.get(memory)! - 1;
    if (others > 0) this.#pins.set(memory, others);
    else {
      this.#pins.delete(memory);
      if (this.#orphans.delete(memory)) this.free(memory);
    }
  }
}

/** Until finalizers have run: Node runs them behind its timers, and a timer that is due already would come before them. */
async function giveWay(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  if (typeof setImmediate === "function") await new Promise((resolve) => setImmediate(resolve));
}
