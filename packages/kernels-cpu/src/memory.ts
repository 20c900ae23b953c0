/** Memory of the cpu device: JavaScript's own, at a known address. */
import { OptError } from "@opt/core";
import { type Memory, staggeredBytes, type TypedArray } from "@opt/core/backend";
import type { Addon } from "./addon";
import { addressOf, HUGE_PAGE, newView, type Part, Regions } from "./regions";
import { LARGEST_IN_SLAB, type Slab, Slabs } from "./slabs";

/** Aligned to a cache line, which is also the widest vector. */
const ALIGNMENT = 64;
const HUGE_FROM = 4 * 2 ** 20;

/** Bytes at an address: the device's own or the caller's array. */
export class CpuMemory implements Memory {
  freed = false;
  /** See `ListedMemory`. */
  isListed = false;

  constructor(
    readonly bytes: number,
    readonly address: number,
    /** The whole of the caller's array, or the first bytes of a block of ours. It keeps the memory alive. */
    readonly view: TypedArray,
    readonly byteOffset: number,
    /** Of a block what can be used; 0 for the caller's memory. */
    readonly blockBytes: number,
    /** Of small blocks, where they go back to. */
    readonly slab?: Slab,
    /** Of other blocks, what they are of a region. */
    readonly part?: Part,
  ) {}

  /** @throws OptError DISPOSED once freed, or when the caller's array was transferred or its buffer resized */
  checkUsable(): void {
    if (!this.freed && (this.blockBytes > 0 || this.view.byteLength === this.bytes)) return;
    const how = this.freed ? "was freed" : "has changed its size: its buffer was transferred or resized";
    throw new OptError("DISPOSED", "cpu", `the memory ${how}.`, "Leave arrays as they are while tensors use them.");
  }

  /** @throws OptError DISPOSED, INTERNAL if the range is not inside */
  byteView(byteOffset: number, length: number): Uint8Array {
    this.checkUsable();
    if (!(byteOffset >= 0 && length >= 0 && byteOffset + length <= this.bytes)) {
      throw bug(`bytes ${byteOffset} to ${byteOffset + length} must lie in memory of ${this.bytes}.`);
    }
    return new Uint8Array(this.view.buffer, this.byteOffset + byteOffset, length);
  }
}

/** Memory that lists know the addresses of: how much of it was freed. */
const listed = { freed: 0 };

/** Memory whose addresses are in a list, asked before each launch of it whether it is still what it was. */
export class ListedMemory {
  readonly #memories: readonly CpuMemory[];
  /** All `listed.freed` when the memories were asked last. */
  #seen = listed.freed;
  /** The caller's, by their buffers: each object on the way to them would be one more wait for memory. */
  readonly #callers: readonly CpuMemory[];
  private readonly buffers: readonly ArrayBufferLike[];
  private readonly bytes: Float64Array;

  constructor(memories: Iterable<CpuMemory>) {
    this.#memories = [...new Set(memories)];
    for (const memory of this.#memories) memory.isListed = true;
    this.#callers = this.#memories.filter(({ blockBytes }) => blockBytes === 0);
    this.buffers = this.#callers.map(({ view }) => view.buffer);
    this.bytes = Float64Array.from(this.buffers, ({ byteLength }) => byteLength);
  }

  /** @throws OptError DISPOSED */
  check(): void {
    if (this.#seen !== listed.freed) {
      for (const memory of this.#memories) memory.checkUsable();
      this.#seen = listed.freed;
    }
    const { buffers, bytes } = this;
    for (let i = 0; i < buffers.length; i++) if (buffers[i]!.byteLength !== bytes[i]) this.#callers[i]!.checkUsable();
  }
}

/** What only a bug of ours can cause: caught here, because native code would crash on it. */
export function bug(problem: string): OptError {
  return new OptError("INTERNAL", "cpu", problem, "Please report this: it is a bug in Opt.");
}

/** @throws OptError DEVICE_MISMATCH, DISPOSED */
export function cpuMemory(memory: Memory): CpuMemory {
  if (!(memory instanceof CpuMemory)) {
    throw new OptError("DEVICE_MISMATCH", "cpu", "memory must be the cpu device's, got another's.", "Use .to(device).");
  }
  memory.checkUsable();
  return memory;
}

/** V8 maps a buffer that may change its length: it is new and untouched, where the C library may give memory that it has had before. */
const Resizable = ArrayBuffer as new (length: number, options: { maxByteLength: number }) => ArrayBuffer;

/** New memory, zeros, that begins with a huge page. It is the caller's, and the garbage collector's in the end. */
export function newPages(addon: Addon, bytes: number): Uint8Array {
  const length = bytes + HUGE_PAGE;
  const buffer = new Resizable(length, { maxByteLength: length });
  const address = addon.address(new Uint8Array(buffer, 0, 1));
  const byteOffset = (HUGE_PAGE - (address % HUGE_PAGE)) % HUGE_PAGE;
  addon.useHugePages?.(address, length, address + byteOffset, bytes);
  return new Uint8Array(buffer, byteOffset, bytes);
}

export class Allocator {
  readonly #slabs: Slabs;
  readonly #regions: Regions;

  constructor(private readonly addon: Addon) {
    this.#regions = new Regions(addon);
    this.#slabs = new Slabs(
      (bytes) => this.#newSlab(bytes),
      (view) => addon.release(view),
    );
  }

  /** @throws OptError OUT_OF_MEMORY */
  allocate(bytes: number): CpuMemory {
    const blockBytes = Math.ceil(Math.max(bytes, 1) / ALIGNMENT) * ALIGNMENT;
    if (blockBytes <= LARGEST_IN_SLAB) {
      const { slab, place } = this.#slabs.allocate(blockBytes);
      return new CpuMemory(bytes, slab.address + place, slab.view, slab.byteOffset + place, blockBytes, slab);
    }
    const part = this.#afterClearing(bytes, () => this.#regions.allocate(staggeredBytes(blockBytes)));
    const { region, start } = part;
    return new CpuMemory(bytes, addressOf(part), region.view, region.byteOffset + start, blockBytes, undefined, part);
  }

  wrap(array: TypedArray): CpuMemory {
    const address = this.addon.address(array);
    if (array.byteLength >= HUGE_FROM) this.addon.adviseHugePages?.(address, array.byteLength);
    return new CpuMemory(array.byteLength, address, array, array.byteOffset, 0);
  }

  free(memory: CpuMemory): void {
    if (memory.freed) return;
    memory.freed = true;
    if (memory.isListed) listed.freed++;
    if (memory.blockBytes === 0) return;
    if (memory.slab !== undefined) {
      this.#slabs.free(memory.slab, memory.byteOffset - memory.slab.byteOffset);
      return;
    }
    this.#regions.free(memory.part!);
  }

  /** Gives all that is free back to the system. */
  clear(): void {
    this.#slabs.clear();
    this.#regions.clear();
  }

  #newSlab(bytes: number): Pick<Slab, "view" | "address" | "byteOffset"> {
    const view = this.#afterClearing(bytes, () => newView(bytes + ALIGNMENT));
    const address = this.addon.address(view);
    const byteOffset = (ALIGNMENT - (address % ALIGNMENT)) % ALIGNMENT;
    return { view, address: address + byteOffset, byteOffset };
  }

  /** What `allocate` gives, where it must, once all that is free went back. @throws OptError OUT_OF_MEMORY */
  #afterClearing<Given>(bytes: number, allocate: () => Given | undefined): Given {
    const given = allocate();
    if (given !== undefined) return given;
    this.clear();
    const last = allocate();
    if (last !== undefined) return last;
    throw new OptError(
      "OUT_OF_MEMORY",
      "cpu",
      `cannot allocate ${bytes} bytes.`,
      "Free tensors with dispose() or tidy().",
    );
  }
}
