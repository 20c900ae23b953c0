/** Memory on the GPU. All work of a device runs on one stream, so a freed block may be given out again at once: later work comes later. */
import { OptError } from "@opt/core";
import type { Memory } from "@opt/core/backend";
import { STATUS } from "./driver";
import { bug, type Gpu } from "./gpu";

/** The driver's own alignment, and ours. */
const SMALLEST = 512;
const MIB = 2 ** 20;

export class CudaMemory implements Memory {
  freed = false;

  constructor(
    readonly bytes: number,
    readonly address: number,
    readonly blockBytes: number,
    readonly owner: Allocator,
  ) {}
}

/** What a request takes: one of eight sizes per power of two, so that similar requests share blocks at a cost of an eighth. */
export function blockSize(bytes: number): number {
  const step = Math.max(SMALLEST, 2 ** (Math.floor(Math.log2(Math.max(bytes, 1))) - 3));
  return Math.ceil(Math.max(bytes, 1) / step) * step;
}

export class Allocator {
  readonly #kept = new Map<number, number[]>();
  #keptBytes = 0;
  #usedBytes = 0;
  /** Blocks that a recorded step writes to: nobody else may have them while it lives. */
  #held: { address: number; blockBytes: number }[] | undefined;

  constructor(private readonly gpu: Gpu) {}

  /** Bytes taken from the driver. */
  get reservedBytes(): number {
    return this.#usedBytes + this.#keptBytes;
  }

  /** @throws OptError OUT_OF_MEMORY naming the request */
  allocate(bytes: number): CudaMemory {
    this.gpu.use();
    const blockBytes = blockSize(bytes);
    const address = this.#takeKept(blockBytes) ?? this.#take(blockBytes) ?? this.#takeAfterClearing(bytes, blockBytes);
    this.#usedBytes += blockBytes;
    return new CudaMemory(bytes, address, blockBytes, this);
  }

  free(memory: CudaMemory): void {
    if (memory.freed) return;
    memory.freed = true;
    if (this.#held !== undefined) this.#held.push(memory);
    else this.#giveBack(memory);
  }

  /** From now on freed blocks are kept for the graph's own use when it ends. */
  hold(): void {
    this.#held = [];
  }

  /** Ends `hold`; calling what it returns gives the blocks back. */
  release(): () => void {
    const held = this.#held ?? [];
    this.#held = undefined;
    return () => {
      for (const block of held.splice(0)) this.#giveBack(block);
    };
  }

  /** Gives all kept blocks back to the driver, which waits for the GPU. */
  clear(): void {
    for (const [, addresses] of this.#kept) {
      for (const address of addresses) this.gpu.check(this.gpu.driver.cuMemFree_v2(address), "freeing memory");
    }
    this.#kept.clear();
    this.#keptBytes = 0;
  }

  #giveBack({ address, blockBytes }: { address: number; blockBytes: number }): void {
    this.#usedBytes -= blockBytes;
    this.#keptBytes += blockBytes;
    const list = this.#kept.get(blockBytes);
    if (list === undefined) this.#kept.set(blockBytes, [address]);
    else list.push(address);
  }

  #takeKept(blockBytes: number): number | undefined {
    const address = this.#kept.get(blockBytes)?.pop();
    if (address !== undefined) this.#keptBytes -= blockBytes;
    return address;
  }

  #take(blockBytes: number): number | undefined {
    const out = new BigUint64Array(1);
    const status = this.gpu.driver.cuMemAlloc_v2(out, blockBytes);
    if (status === STATUS.outOfMemory) return undefined;
    this.gpu.check(status, `allocating ${blockBytes} bytes`);
    return Number(out[0]);
  }

  #takeAfterClearing(bytes: number, blockBytes: number): number {
    this.clear();
    const address = this.#take(blockBytes);
    if (address !== undefined) return address;
    const { free, total } = this.gpu.memory();
    const mib = (count: number) => `${Math.round(count / MIB)} MiB`;
    throw new OptError(
      "OUT_OF_MEMORY",
      this.gpu.where,
      `cannot allocate ${bytes} bytes: ${mib(this.#usedBytes)} in use here, ${mib(free)} of ${mib(total)} free on ${this.gpu.name}.`,
      "Free tensors with dispose() or tidy(), or use smaller batches.",
    );
  }
}

/** @throws OptError DISPOSED, DEVICE_MISMATCH */
function cudaMemory(memory: Memory, owner: Allocator): CudaMemory {
  if (!(memory instanceof CudaMemory) || memory.owner !== owner) {
    throw new OptError("DEVICE_MISMATCH", "cuda", "memory must be this device's, got another's.", "Use .to(device).");
  }
  if (memory.freed)
    throw new OptError("DISPOSED", "cuda", "the memory was freed.", "Keep tensors alive while they are used.");
  return memory;
}

/** The address of a range. @throws OptError DISPOSED, DEVICE_MISMATCH, INTERNAL if the range is not inside */
export function rangeAddress(memory: Memory, owner: Allocator, byteOffset: number, bytes: number): number {
  const own = cudaMemory(memory, owner);
  if (!(byteOffset >= 0 && bytes >= 0 && byteOffset + bytes <= own.bytes)) {
    throw bug(`bytes ${byteOffset} to ${byteOffset + bytes} must lie in memory of ${own.bytes}.`);
  }
  return own.address + byteOffset;
}
