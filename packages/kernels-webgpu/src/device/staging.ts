/** Buffers through which the host reads, kept for the next reads of their size. */

const SMALLEST = 4096;
const KEPT_PER_SIZE = 4;

export class Staging {
  readonly #free = new Map<number, GPUBuffer[]>();

  constructor(private readonly device: GPUDevice) {}

  take(bytes: number): GPUBuffer {
    const size = Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(bytes)));
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
