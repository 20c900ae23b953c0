/** Memory of the cpu device: JavaScript's own, at a known address. */
import { OptError } from "@opt/core";
import { type Memory, staggeredStart, type TypedArray } from "@opt/core/backend";
import type { Addon } from "./addon";
import { LARGEST_IN_SLAB, type Slab, Slabs } from "./slabs";

/** Aligned to a cache line, which is also the widest vector. */
const ALIGNMENT = 64;
/** Blocks that are not in slabs begin so far behind a page as `staggeredStart` says, wherever the system put them. */
const PAGE = 4096;
const HUGE_FROM = 4 * 2 ** 20;
/** A block that begins inside a huge page gets small ones there, and shares its mapping with the next, which then wait for each other. */
const HUGE_PAGE = 2 * 2 ** 20;
/** Freed blocks kept for the next allocation of their size, so that a training step takes no new pages. */
const MAX_KEPT_BYTES = 512 * 2 ** 20;
/** So many are always kept. More are kept only while they and the live blocks together are no more than once lived. */
const LEAST_KEPT_BYTES = 16 * 2 ** 20;

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
    /** Of a block what can be used, the key of the free list; 0 for the caller's memory. */
    readonly blockBytes: number,
    /** Of small blocks, where they go back to. */
    readonly slab?: Slab,
    /** Of other blocks, `Block.start`. */
    readonly start = 0,
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

/** What is not used of a block's buffer is never touched, and takes no memory. */
function alignmentOf(blockBytes: number): number {
  if (blockBytes >= HUGE_FROM) return HUGE_PAGE;
  return blockBytes > LARGEST_IN_SLAB ? PAGE : ALIGNMENT;
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

interface Block {
  readonly view: Uint8Array;
  readonly address: number;
  /** How far behind its first aligned address it begins. */
  readonly start: number;
}

/** Where a block begins, as an address and in its buffer. */
function placed({ view, address, start }: Block, alignment: number) {
  const byteOffset = ((alignment - (address % alignment)) % alignment) + start;
  return { view, address: address + byteOffset, byteOffset };
}

let madeBlocks = 0;
/** Blocks on pages of their own begin each at another place of a page: arrays then do not meet in the same cache sets. */
const nextStart = () => staggeredStart(madeBlocks++);

export class Allocator {
  readonly #kept = new Map<number, Block[]>();
  #keptBytes = 0;
  /** Of blocks that are not in slabs: what lives, and the most that ever did. */
  #liveBytes = 0;
  #mostBytes = 0;
  readonly #slabs: Slabs;

  constructor(private readonly addon: Addon) {
    this.#slabs = new Slabs(
      (bytes) => placed(this.#newBlock(bytes, bytes), ALIGNMENT),
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
    this.#mostBytes = Math.max(this.#mostBytes, this.#liveBytes + blockBytes);
    const block = this.#takeKept(blockBytes) ?? this.#newBlock(bytes, blockBytes);
    this.#liveBytes += blockBytes;
    const { view, address, byteOffset } = placed(block, alignmentOf(blockBytes));
    return new CpuMemory(bytes, address, view, byteOffset, blockBytes, undefined, block.start);
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
    this.#liveBytes -= memory.blockBytes;
    const { start } = memory;
    const block = { view: memory.view as Uint8Array, address: memory.address - memory.byteOffset, start };
    if (memory.blockBytes > MAX_KEPT_BYTES) {
      this.addon.release(block.view);
      return;
    }
    this.#makeRoom(MAX_KEPT_BYTES - memory.blockBytes);
    const list = this.#kept.get(memory.blockBytes);
    if (list === undefined) this.#kept.set(memory.blockBytes, [block]);
    else list.push(block);
    this.#keptBytes += memory.blockBytes;
  }

  /** Gives all kept blocks back to the system. */
  clear(): void {
    this.#slabs.clear();
    this.#makeRoom(0);
  }

  /** Gives back no more than it must, and first of the sizes that are kept for longest. */
  #makeRoom(most: number): void {
    if (this.#keptBytes <= most) return;
    for (const [blockBytes, list] of this.#kept) {
      for (; list.length > 0; this.#keptBytes -= blockBytes) {
        if (this.#keptBytes <= most) return;
        this.addon.release(list.pop()!.view);
      }
      this.#kept.delete(blockBytes);
    }
  }

  #takeKept(blockBytes: number): Block | undefined {
    const block = this.#kept.get(blockBytes)?.pop();
    if (block !== undefined) this.#keptBytes -= blockBytes;
    return block;
  }

  #newBlock(bytes: number, blockBytes: number): Block {
    if (blockBytes > LARGEST_IN_SLAB)
      this.#makeRoom(Math.max(LEAST_KEPT_BYTES, this.#mostBytes - this.#liveBytes - blockBytes));
    const alignment = alignmentOf(blockBytes);
    const start = nextStart();
    const bufferBytes = blockBytes + alignment + start;
    const buffer = this.#tryBuffer(bufferBytes) ?? this.#tryBufferAfterClearing(bufferBytes);
    if (buffer === undefined) {
      const advice = "Free tensors with dispose() or tidy().";
      throw new OptError("OUT_OF_MEMORY", "cpu", `cannot allocate ${bytes} bytes.`, advice);
    }
    // A short view: what counts is its buffer, which may be longer than any typed array.
    const view = new Uint8Array(buffer, 0, 1);
    const address = this.addon.address(view);
    if (alignment === HUGE_PAGE) {
      this.addon.useHugePages?.(address, bufferBytes, Math.ceil(address / alignment) * alignment, start + blockBytes);
    }
    return { view, address, start };
  }

  #tryBufferAfterClearing(bytes: number): ArrayBuffer | undefined {
    this.clear();
    return this.#tryBuffer(bytes);
  }

  #tryBuffer(bytes: number): ArrayBuffer | undefined {
    try {
      return new ArrayBuffer(bytes);
    } catch {
      return undefined;
    }
  }
}
