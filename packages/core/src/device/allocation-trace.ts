/** Stack traces of allocations. Off by default, because a trace costs more than an allocation. */
import type { Memory } from "../backend/memory";
import { shared } from "../host/shared";

/** Nothing until somebody asks: programs that never do ship no trace. */
export const allocations = /* @__PURE__ */ shared("traceAllocations", (): { trace?: AllocationTrace } => ({}));

/**
 * From now on every allocation notes where it was made, until `traceAllocations(false)`: an OUT_OF_MEMORY error then shows who holds most.
 *
 * @example
 * traceAllocations();
 * const weights = zeros([1000]); // an OUT_OF_MEMORY error would name this line
 * traceAllocations(false);
 */
export function traceAllocations(on = true): void {
  allocations.trace ??= new AllocationTrace();
  allocations.trace.isOn = on;
}

class AllocationTrace {
  isOn = true;
  readonly #stacks = new Map<Memory, { pool: object; stack: string }>();

  made(memory: Memory, pool: object): void {
    if (this.isOn) this.#stacks.set(memory, { pool, stack: new Error().stack ?? "" });
  }

  freed(memory: Memory): void {
    this.#stacks.delete(memory);
  }

  /** Of the largest memory of a pool that is alive: who made it; undefined if none was traced. */
  largest(pool: object): string | undefined {
    const [largest] = [...this.#stacks].filter(([, made]) => made.pool === pool).sort(([a], [b]) => b.bytes - a.bytes);
    if (largest === undefined) return undefined;
    // The first lines are the error's own and core's ways to memory.
    return `The largest, of ${largest[0].bytes} bytes, was made\n${largest[1].stack.split("\n").slice(1).join("\n")}`;
  }
}
