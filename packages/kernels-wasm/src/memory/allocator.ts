/** Hands out ranges of addresses: two-level segregated fit (Masmano et al. 2004) with immediate merging of free neighbours. */

/** Every block starts and ends at a multiple of this: a cache line. */
export const ALIGNMENT = 64;

/** Size classes per doubling. */
const STEPS = 8;
/** Blocks of a request's own class that are tried before the next class, whose blocks all fit. */
const TRIES = 8;

interface Block {
  address: number;
  bytes: number;
  next: Block | undefined;
  previous: Block | undefined;
}

export class Allocator {
  /** Free blocks by size class, by address and by end. */
  readonly #bins: (Block | undefined)[] = [];
  readonly #byAddress = new Map<number, Block>();
  readonly #byEnd = new Map<number, Block>();
  readonly #allocated = new Map<number, number>();
  #end: number;
  #used = 0;

  /** `grow(end)` must make addresses below `end` usable and return the end it reached, or undefined if it cannot. */
  constructor(
    start: number,
    private readonly grow: (end: number) => number | undefined,
  ) {
    this.#end = start;
  }

  /** Bytes in allocated blocks. */
  get used(): number {
    return this.#used;
  }

  /** Where the memory that was asked for so far ends. */
  get end(): number {
    return this.#end;
  }

  /** The address of `bytes` fresh bytes, or undefined if there is no room. */
  allocate(bytes: number): number | undefined {
    const size = Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
    const block = this.#find(size) ?? this.#extend(size);
    if (block === undefined) return undefined;
    this.#remove(block);
    if (block.bytes > size) this.#insert(block.address + size, block.bytes - size);
    this.#allocated.set(block.address, size);
    this.#used += size;
    return block.address;
  }

  free(address: number): void {
    let bytes = this.#allocated.get(address);
    if (bytes === undefined) throw new RangeError(`no block is allocated at ${address}`);
    this.#allocated.delete(address);
    this.#used -= bytes;
    let start = address;
    const before = this.#byEnd.get(address);
    const after = this.#byAddress.get(address + bytes);
    if (before !== undefined) {
      this.#remove(before);
      start = before.address;
      bytes += before.bytes;
    }
    if (after !== undefined) {
      this.#remove(after);
      bytes += after.bytes;
    }
    this.#insert(start, bytes);
  }

  #find(size: number): Block | undefined {
    const own = binOf(size);
    let candidate = this.#bins[own];
    for (let tries = 0; candidate !== undefined && tries < TRIES; tries++) {
      if (candidate.bytes >= size) return candidate;
      candidate = candidate.next;
    }
    for (let bin = own + 1; bin < this.#bins.length; bin++) if (this.#bins[bin] !== undefined) return this.#bins[bin];
    return undefined;
  }

  #extend(size: number): Block | undefined {
    const last = this.#byEnd.get(this.#end);
    const start = last?.address ?? this.#end;
    const reached = this.grow(start + size);
    if (reached === undefined) return undefined;
    if (last !== undefined) this.#remove(last);
    this.#end = reached;
    return this.#insert(start, reached - start);
  }

  #insert(address: number, bytes: number): Block {
    const bin = binOf(bytes);
    const next = this.#bins[bin];
    const block: Block = { address, bytes, next, previous: undefined };
    if (next !== undefined) next.previous = block;
    while (this.#bins.length <= bin) this.#bins.push(undefined);
    this.#bins[bin] = block;
    this.#byAddress.set(address, block);
    this.#byEnd.set(address + bytes, block);
    return block;
  }

  #remove(block: Block): void {
    if (block.previous === undefined) this.#bins[binOf(block.bytes)] = block.next;
    else block.previous.next = block.next;
    if (block.next !== undefined) block.next.previous = block.previous;
    this.#byAddress.delete(block.address);
    this.#byEnd.delete(block.address + block.bytes);
  }
}

/** The class of a size: blocks of class k + 1 are all larger than those of class k. */
function binOf(bytes: number): number {
  const units = bytes / ALIGNMENT;
  const doubling = 31 - Math.clz32(units);
  const step = Math.floor((units / 2 ** doubling - 1) * STEPS);
  return doubling * STEPS + step;
}
