/** The one WebAssembly memory of a backend: grows as needed, is read and written through views. */

import { OptError } from "@opt/core";
import type { Memory } from "@opt/core/backend";
import { MAXIMUM_PAGES } from "../assembler";
import { Allocator } from "./allocator";

const PAGE = 65_536;
/** Addresses below belong to the threads' control block; 0 is never handed out. */
const RESERVED = PAGE;
/** The last page stays unused, so that the address behind any slice fits 32 bits. */
const USABLE_PAGES = MAXIMUM_PAGES - 1;

export class Block implements Memory {
  constructor(
    readonly address: number,
    readonly bytes: number,
  ) {}

  isFree = false;
}

export class LinearMemory {
  readonly memory: WebAssembly.Memory;
  readonly #allocator: Allocator;
  readonly #limit: number;
  #bytes: Uint8Array;
  #words: Int32Array;

  /** `maximumPages` is for tests: the default is all that 32 bits address, or what the engine grants of it. */
  constructor(
    readonly shared: boolean,
    maximumPages = MAXIMUM_PAGES,
  ) {
    const { memory, granted } = reserve(shared, maximumPages);
    this.memory = memory;
    this.#limit = Math.min(USABLE_PAGES, granted) * PAGE;
    this.#bytes = new Uint8Array(this.memory.buffer);
    this.#words = new Int32Array(this.memory.buffer);
    this.#allocator = new Allocator(RESERVED, (end) => this.#grow(end));
  }

  /** Bytes in use. */
  get used(): number {
    return this.#allocator.used;
  }

  /** Bytes that the engine has handed over so far. */
  get reserved(): number {
    return this.#bytes.length;
  }

  /** All of memory as i32 words; stale after the next allocation. */
  get words(): Int32Array {
    return this.#words;
  }

  /** @throws OptError OUT_OF_MEMORY naming the request. */
  allocate(bytes: number): Block {
    const address = this.#allocator.allocate(bytes);
    if (address !== undefined) return new Block(address, bytes);
    throw new OptError(
      "OUT_OF_MEMORY",
      "wasm",
      `${mebibytes(bytes)} must fit into memory, got a request with ${mebibytes(this.used)} of ${mebibytes(this.#limit)} in use.`,
      "Dispose of tensors, use smaller batches, or a device with 64-bit addresses.",
    );
  }

  free(block: Block): void {
    if (block.isFree) throw new RangeError(`the block at ${block.address} is free`);
    block.isFree = true;
    this.#allocator.free(block.address, block.bytes);
  }

  write(address: number, bytes: Uint8Array): void {
    this.#bytes.set(bytes, address);
  }

  /** A copy, in memory that is not shared. */
  read(address: number, bytes: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#bytes.subarray(address, address + bytes));
  }

  readInto(address: number, bytes: Uint8Array): void {
    bytes.set(this.#bytes.subarray(address, address + bytes.length));
  }

  /** Grows by an eighth at least, so that many small requests cost few calls. */
  #grow(end: number): number | undefined {
    if (end > this.#limit) return undefined;
    const have = this.#bytes.length;
    if (end > have) {
      const generous = Math.min(Math.max(end, have + have / 8), this.#limit);
      if (!this.#growTo(generous) && !this.#growTo(end)) return undefined;
    }
    return Math.min(this.#bytes.length, this.#limit);
  }

  #growTo(end: number): boolean {
    try {
      this.memory.grow(Math.ceil((end - this.#bytes.length) / PAGE));
    } catch {
      return false;
    }
    this.#bytes = new Uint8Array(this.memory.buffer);
    this.#words = new Int32Array(this.memory.buffer);
    return true;
  }
}

/** Engines set the address space aside at once, and some grant less than 4 GiB. */
function reserve(shared: boolean, maximumPages: number): { memory: WebAssembly.Memory; granted: number } {
  for (let maximum = maximumPages; ; maximum = Math.floor(maximum / 2)) {
    try {
      return { memory: new WebAssembly.Memory({ initial: 1, maximum, shared }), granted: maximum };
    } catch (cause) {
      if (maximum > 1024) continue;
      const advice = "Close other pages or use `js`.";
      throw new OptError("DEVICE_UNAVAILABLE", "wasm", "the engine grants no memory.", advice, { cause });
    }
  }
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 2 ** 20 ? 3 : 0)} MiB`;
}
