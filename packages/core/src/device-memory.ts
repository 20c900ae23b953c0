/** The memory of one device: what lives, and what recordings still use after its owners have let it go. */
import type { Backend } from "./backend/backend";
import type { Memory } from "./backend/memory";
import type { TypedArray } from "./dtype";

export class DeviceMemory {
  private bytes = 0;
  /** Memory that recordings use, by how many of them. */
  private readonly pins = new Map<Memory, number>();
  /** Pinned memory that its owners have freed. */
  private readonly orphans = new Set<Memory>();

  constructor(private readonly backend: Backend) {}

  get liveBytes(): number {
    return this.bytes;
  }

  allocate(bytes: number): Memory {
    const memory = this.backend.allocate(bytes);
    this.bytes += memory.bytes;
    return memory;
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
    this.backend.free(memory);
  }

  /** True if the owners of one of these, which a recording uses, have freed it. */
  isAnyFreed(memories: readonly Memory[]): boolean {
    return this.orphans.size > 0 && memories.some((memory) => this.orphans.has(memory));
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
