/** Buffers through which the host reads, kept for the next reads of their size. */

const SMALLEST = 4096;
/** What one buffer carries of a read: several that fit everywhere instead of one that may not. */
const LARGEST = 2 ** 26;
const KEPT_PER_SIZE = 4;

export interface Piece {
  readonly start: number;
  readonly length: number;
}

export class Staging {
  readonly #free = new Map<number, GPUBuffer[]>();
  readonly #largest: number;

  constructor(
    private readonly device: GPUDevice,
    maxBufferSize: number,
  ) {
    this.#largest = Math.min(LARGEST, Math.floor(maxBufferSize / 4) * 4);
  }

  /** The ranges of a buffer's bytes that one staging buffer carries each. */
  pieces(from: number, to: number): Piece[] {
    return Array.from({ length: Math.ceil((to - from) / this.#largest) }, (_, i) => {
      const start = from + i * this.#largest;
      return { start, length: Math.min(this.#largest, to - start) };
    });
  }

  take(bytes: number): GPUBuffer {
    const size = Math.min(Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(bytes))), this.#largest);
    const usage = 0x01 | 0x08; // MAP_READ | COPY_DST
    return this.#free.get(size)?.pop() ?? this.device.createBuffer({ label: "staging", size, usage });
  }

  give(buffer: GPUBuffer): void {
    const kept = this.#free.get(buffer.size) ?? [];
    this.#free.set(buffer.size, kept);
    if (kept.length < KEPT_PER_SIZE) kept.push(buffer);
    else buffer.destroy();
  }

  close(): void {
    for (const buffers of this.#free.values()) for (const buffer of buffers) buffer.destroy();
    this.#free.clear();
  }
}
