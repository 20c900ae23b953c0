/**
 * Small blocks, many in one buffer (slabs: Bonwick 1994): those of one size lie one behind the other in the order in which they were
 * asked for. The tensors of a group then touch few pages, and a launch over them reads on as in one array.
 */

/** Blocks up to this many bytes are put into slabs. */
export const LARGEST_IN_SLAB = 2 ** 16;
const SLAB_BYTES = 2 ** 20;
const FIRST_SLOTS = 4;
/** Empty slabs that are kept for the next blocks of their size. */
const MAX_EMPTY_BYTES = 64 * 2 ** 20;

/** A buffer of blocks of one size. */
export interface Slab {
  /** A short view of the buffer, which keeps it alive. */
  readonly view: Uint8Array;
  /** Of the first block, and where that is in the buffer. */
  readonly address: number;
  readonly byteOffset: number;
  readonly blockBytes: number;
  readonly slots: number;
  /** Blocks that were given back, and how many were ever handed out: the others come after these. */
  readonly free: number[];
  begun: number;
}

const liveIn = ({ begun, free }: Slab) => begun - free.length;
const bytesOf = ({ slots, blockBytes }: Slab) => slots * blockBytes;

/** Slabs of one size: all slots, and the slabs that have a free one. */
interface SizeClass {
  slots: number;
  readonly open: Slab[];
}

export class Slabs {
  readonly #classes = new Map<number, SizeClass>();
  #emptyBytes = 0;

  /** @param make a buffer for so many bytes, of which `address` is aligned; @param release gives a buffer back */
  constructor(
    private readonly make: (bytes: number) => Pick<Slab, "view" | "address" | "byteOffset">,
    private readonly release: (view: Uint8Array) => void,
  ) {}

  /** A block, by its slab and the place in that. @throws what `make` throws */
  allocate(blockBytes: number): { slab: Slab; place: number } {
    let size = this.#classes.get(blockBytes);
    if (size === undefined) {
      size = { slots: 0, open: [] };
      this.#classes.set(blockBytes, size);
    }
    const slab = size.open.at(-1) ?? this.#grow(size, blockBytes);
    if (liveIn(slab) === 0) this.#emptyBytes -= bytesOf(slab);
    const slot = slab.free.pop() ?? slab.begun++;
    if (liveIn(slab) === slab.slots) size.open.pop();
    return { slab, place: slot * blockBytes };
  }

  free(slab: Slab, place: number): void {
    const { open } = this.#classes.get(slab.blockBytes)!;
    if (liveIn(slab) === slab.slots) open.push(slab);
    slab.free.push(place / slab.blockBytes);
    if (liveIn(slab) > 0) return;
    this.#emptyBytes += bytesOf(slab);
    if (this.#emptyBytes > MAX_EMPTY_BYTES) this.#drop(slab);
  }

  /** Gives empty slabs back to the system. */
  clear(): void {
    for (const { open } of this.#classes.values()) {
      for (const slab of [...open]) if (liveIn(slab) === 0) this.#drop(slab);
    }
  }

  /** As many slots again as there are. */
  #grow(size: SizeClass, blockBytes: number): Slab {
    const slots = Math.max(1, Math.min(Math.max(size.slots, FIRST_SLOTS), Math.floor(SLAB_BYTES / blockBytes)));
    const slab: Slab = { ...this.make(slots * blockBytes), blockBytes, slots, free: [], begun: 0 };
    size.slots += slots;
    size.open.push(slab);
    this.#emptyBytes += bytesOf(slab);
    return slab;
  }

  #drop(slab: Slab): void {
    const size = this.#classes.get(slab.blockBytes)!;
    size.open.splice(size.open.indexOf(slab), 1);
    size.slots -= slab.slots;
    this.#emptyBytes -= bytesOf(slab);
    this.release(slab.view);
  }
}
