/** Who allocated what: kept only when asked for, because a stack trace costs more than an allocation. */
import type { Memory } from "../backend/memory";
import { shared } from "../host/shared";

const tracing = /* @__PURE__ */ shared("traceAllocations", () => ({ on: false }));

/**
 * From now on every allocation notes where it was made, until `traceAllocations(false)`: an OUT_OF_MEMORY error then shows who holds most.
 *
 * @example
 * traceAllocations();
 * const weights = zeros([1000]); // an OUT_OF_MEMORY error would name this line
 * traceAllocations(false);
 */
export function traceAllocations(on = true): void {
  tracing.on = on;
}

export class AllocationTrace {
  private readonly stacks = new Map<Memory, string>();

  made(memory: Memory): void {
    if (tracing.on) this.stacks.set(memory, new Error().stack ?? "");
  }

  freed(memory: Memory): void {
    if (this.stacks.size > 0) this.stacks.delete(memory);
  }

  /** The largest memory that is alive, and its maker; undefined if none was traced. */
  largest(): { bytes: number; stack: string } | undefined {
    let largest: Memory | undefined;
    for (const memory of this.stacks.keys()) if (memory.bytes > (largest?.bytes ?? -1)) largest = memory;
    // The first lines are the error's own and core's ways to memory.
    return largest && { bytes: largest.bytes, stack: this.stacks.get(largest)!.split("\n").slice(1).join("\n") };
  }
}
