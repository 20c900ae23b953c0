/** Hands out ranges of addresses: two-level segregated fit (Masmano et al. 2004) with immediate merging of free neighbours. */

import { staggeredBytes } from "@opt/core/backend";

/** Every block starts and ends at a multiple of this: a cache line. */
export const ALIGNMENT = 64;

/** Blocks up to this many bytes are handed out again as they are: a training step makes the same ones again and again. */
const LARGEST_SPARE = 16_384;
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
  /** Small blocks that were given back, by their size in units. */
  readonly #spare = Array.from({ length: LARGEST_SPARE / ALIGNMENT + 1 }, (): number[] => []);
  /** Addresses of large blocks that are not staggered. */
  readonly #tight = new Set<number>();
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
    const size = sizeOf(bytes);
    const staggered = staggeredBytes(size);
    const address = this.#spare[size / ALIGNMENT]?.pop() ?? this.#cut(staggered);
    if (address === undefined) return staggered > size ? this.#allocateTight(size) : undefined;
    this.#used += staggered;
    return address;
  }

  /** At the end of memory a block has no room to spare. */
  #allocateTight(size: number): number | undefined {
    const address = this.#cut(size);
    if (address === undefined) return undefined;
    this.#tight.add(address);
    this.#used += size;
    return address;
  }

  /** Takes back what `allocate` gave for so many bytes. */
  free(address: number, bytes: number): void {
    const plain = sizeOf(bytes);
    const size = this.#tight.delete(address) ? plain : staggeredBytes(plain);
    this.#used -= size;
    if (size > LARGEST_SPARE) this.#join(address, size);
    else this.#spare[size / ALIGNMENT]!.push(address);
  }

  #cut(size: number): number | undefined {
    const block = this.#find(size) ?? this.#findJoined(size) ?? this.#extend(size);
    if (block === undefined) return undefined;
    this.#remove(block);
    if (block.bytes > size) this.#insert(block.address + size, block.bytes - size);
    return block.address;
  }

  /** Before memory grows, small blocks become part of larger ones. */
  #findJoined(size: number): Block | undefined {
    for (const [units, addresses] of this.#spare.entries())
      for (const address of addresses.splice(0)) this.#join(address, units * ALIGNMENT);
    return this.#find(size);
  }

  #join(address: number, size: number): void {
    let [start, bytes] = [address, size];
    const before = this.#byEnd.get(address);
    const after = this.#byAddress.get(address + size);
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

/** Whole cache lines; of small blocks only four sizes per doubling, so that they fit again. */
function sizeOf(bytes: number): number {
  const isRounded = bytes > 4 * ALIGNMENT && bytes <= LARGEST_SPARE;
  const unit = isRounded ? 1 << (29 - Math.clz32(bytes - 1)) : ALIGNMENT;
  return Math.max(unit, Math.ceil(bytes / unit) * unit);
}

/** The class of a size: blocks of class k + 1 are all larger than those of class k. */
function binOf(bytes: number): number {
  const units = bytes / ALIGNMENT;
  const doubling = 31 - Math.clz32(units);
  const step = Math.floor((units / 2 ** doubling - 1) * STEPS);
  return doubling * STEPS + step;
}
