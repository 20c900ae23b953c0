/**
 * All tensors live in a few large buffers, the heaps. A launch binds whole heaps and finds its tensors by offset, so that
 * one dispatch reaches any number of tensors, and bind groups hardly ever change.
 */
import { OptError } from "@opt/core";
import { type Memory, type Slice, staggeredBytes } from "@opt/core/backend";
import { ALIGNMENT, Allocator, paddedSize } from "./allocator";

export interface HeapLimits {
  /** The largest range that one binding may show: `maxStorageBufferBindingSize`. */
  readonly binding: number;
  readonly buffer: number;
  /** Of the first heap; each further one is as large as all before it. */
  readonly firstHeap: number;
}

/** A buffer. An oversized one holds a single memory, larger than a binding may be, and is bound by ranges. */
export interface Heap {
  readonly id: number;
  readonly buffer: GPUBuffer;
  readonly bytes: number;
  readonly allocator: Allocator | undefined;
  /** The device had no memory for it: nothing more is put there, and it goes with the last that was. */
  failed: boolean;
}

export interface HeapMemory extends Memory {
  readonly heap: Heap;
  /** Where it starts in its heap: a multiple of 256. */
  readonly start: number;
}

export function isOversized({ memory }: Slice): boolean {
  return (memory as HeapMemory).heap.allocator === undefined;
}

export class Heaps {
  readonly #heaps: Heap[] = [];
  /** Half of what the device last had no memory for. */
  #mostAtOnce = Number.POSITIVE_INFINITY;
  #nextId = 0;

  constructor(
    readonly limits: HeapLimits,
    private readonly createBuffer: (bytes: number, label: string, failed: () => void) => GPUBuffer,
  ) {}

  /** Bytes of all buffers, and of the tensors in them. */
  get bytes(): { reserved: number; used: number } {
    const whole = this.#heaps.filter(({ failed }) => !failed);
    const sum = (of: (heap: Heap) => number) => whole.reduce((total, heap) => total + of(heap), 0);
    return { reserved: sum(({ bytes }) => bytes), used: sum(({ bytes, allocator }) => allocator?.used ?? bytes) };
  }

  /** @throws OptError OUT_OF_MEMORY if no buffer can hold the request */
  allocate(bytes: number): HeapMemory {
    const padded = paddedSize(bytes);
    if (padded > this.limits.buffer) {
      throw new OptError(
        "OUT_OF_MEMORY",
        "webgpu",
        `one tensor can hold ${this.limits.buffer} bytes on this device, got ${bytes}.`,
        "Split it, or use another device.",
      );
    }
    if (padded > this.limits.binding) return { bytes, heap: this.#grow(padded, true), start: 0 };
    const room = this.#roomOf(bytes);
    for (const heap of this.#heaps) {
      const start = heap.failed ? undefined : heap.allocator?.allocate(room);
      if (start !== undefined) return { bytes, heap, start };
    }
    const { firstHeap, binding, buffer } = this.limits;
    const wanted = Math.max(firstHeap, this.bytes.reserved);
    const heap = this.#grow(Math.max(room, Math.min(wanted, binding, buffer, this.#mostAtOnce)), false);
    return { bytes, heap, start: heap.allocator!.allocate(room)! };
  }

  /** What a memory takes of its heap: staggered, where a heap can hold that. Adapters in software have a processor's caches. */
  #roomOf(bytes: number): number {
    const padded = paddedSize(bytes);
    const room = staggeredBytes(padded);
    return room <= Math.min(this.limits.binding, this.limits.buffer) ? room : padded;
  }

  /** Returns the buffer that the caller must destroy when no command uses it any more, if there is one. */
  free({ bytes, heap, start }: HeapMemory): GPUBuffer | undefined {
    if (heap.allocator !== undefined) {
      heap.allocator.free(start, this.#roomOf(bytes));
      if (!heap.failed || heap.allocator.used > 0) return undefined;
    }
    this.#heaps.splice(this.#heaps.indexOf(heap), 1);
    return heap.buffer;
  }

  close(): void {
    for (const { buffer } of this.#heaps) buffer.destroy();
    this.#heaps.length = 0;
  }

  #grow(bytes: number, oversized: boolean): Heap {
    const id = this.#nextId++;
    const buffer = this.createBuffer(bytes, `heap ${id}`, () => {
      heap.failed = true;
      this.#mostAtOnce = Math.floor(bytes / 2 / ALIGNMENT) * ALIGNMENT;
    });
    const heap: Heap = { id, buffer, bytes, allocator: oversized ? undefined : new Allocator(bytes), failed: false };
    this.#heaps.push(heap);
    return heap;
  }
}
