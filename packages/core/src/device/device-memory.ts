/** The memory of one device: what lives, what recordings still use after its owners have let it go, and what runs out. */

import type { Backend } from "../backend/backend";
import type { Memory } from "../backend/memory";
import { OptError } from "../errors/errors";
import { collectGarbage } from "../host/garbage";
import type { TypedArray } from "../values/dtype";
import { allocations } from "./allocation-trace";

/** Growth that is worth a collection, which takes milliseconds. */
const PRESSURE = 2 ** 28;

export class DeviceMemory {
  private bytes = 0;
  /** Memory that recordings use, by how many of them. */
  private readonly pins = new Map<Memory, number>();
  /** Pinned memory that its owners have freed. */
  private readonly orphans = new Set<Memory>();

  /** The least that has lived since the last collection. */
  private settled = 0;
  private opened: Backend | undefined;

  constructor(
    private readonly name: string,
    backend: Backend,
  ) {
    this.opened = backend;
  }

  get isClosed(): boolean {
    return this.opened === undefined;
  }

  /** @throws OptError DISPOSED once closed */
  get backend(): Backend {
    if (this.opened !== undefined) return this.opened;
    const advice = `await init("${this.name}") opens it anew.`;
    throw new OptError("DISPOSED", this.name, "the device was closed, and its tensors with it.", advice);
  }

  /** From now on memory is counted, but there is nobody to give it back to. */
  close(): void {
    this.opened = undefined;
  }

  get liveBytes(): number {
    return this.bytes;
  }

  /** @throws OptError OUT_OF_MEMORY with the count of tensors that live, and where the largest was made if that is traced */
  allocate(bytes: number, tensors: number): Memory {
    const { backend } = this;
    if (!backend.isCollected && this.bytes - this.settled > Math.max(PRESSURE, this.settled)) this.collect();
    let memory: Memory;
    try {
      memory = backend.allocate(bytes);
    } catch (error) {
      throw (error as { code?: string }).code === "OUT_OF_MEMORY" ? this.exhausted(error as OptError, tensors) : error;
    }
    this.bytes += memory.bytes;
    allocations.trace?.made(memory, this);
    return memory;
  }

  /** Dropped tensors come back when the program next gives way: until then all counts as alive. */
  private collect(): void {
    collectGarbage();
    this.settled = this.bytes;
  }

  private exhausted(error: OptError, tensors: number): OptError {
    this.collect();
    const by = allocations.trace?.largest(this) ?? "traceAllocations() before would say who made the largest.";
    const held = `${tensors} tensors live on ${this.name}, ${this.bytes} bytes; what was dropped comes back at the next await.`;
    const words = error.message.slice(error.message.indexOf("]") + 2);
    return new OptError("OUT_OF_MEMORY", error.where, words, `${held} ${by}`, { cause: error });
  }

  /** Memory over the caller's own array, where the device can work in it. */
  wrap(array: TypedArray): Memory | undefined {
    const memory = this.backend.wrap?.(array);
    if (memory !== undefined) this.bytes += memory.bytes;
    return memory;
  }

  /** Gives memory back, as soon as no recording uses it. */
  free(memory: Memory): void {
    if (this.pins.has(memory)) {
      this.orphans.add(memory);
      return;
    }
    this.bytes -= memory.bytes;
    this.settled = Math.min(this.settled, this.bytes);
    allocations.trace?.freed(memory);
    this.opened?.free(memory);
  }

  pin(memory: Memory): void {
    this.pins.set(memory, (this.pins.get(memory) ?? 0) + 1);
  }

  unpin(memory: Memory): void {
    const others = this.pins.get(memory)! - 1;
    if (others > 0) this.pins.set(memory, others);
    else {
      this.pins.delete(memory);
      if (this.orphans.delete(memory)) this.free(memory);
    }
  }
}
