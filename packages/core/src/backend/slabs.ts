/**
 * Small blocks, many in one region (slabs: Bonwick 1994): those of one size lie one behind the other in the order in which they were
 * asked for. The tensors of a group then touch few pages, and a launch over them reads on as in one array.
 */

/** Blocks up to this many bytes are put into slabs. */
export const LARGEST_IN_SLAB = 2 ** 16;
const SLAB_BYTES = 2 ** 20;
const FIRST_SLOTS = 4;
/** Empty slabs that are kept for the next blocks of their size. */
const MAX_EMPTY_BYTES = 64 * 2 ** 20;

/** Memory for blocks of one size. */
export interface Slab<Region> {
  readonly region: Region;
  readonly blockBytes: number;
  readonly slots: number;
  /** Blocks that were given back, and how many were ever handed out: the others come after these. */
  readonly free: number[];
  begun: number;
}

const liveIn = ({ begun, free }: Slab<unknown>) => begun - free.length;
const bytesOf = ({ slots, blockBytes }: Slab<unknown>) => slots * blockBytes;

/** Slabs of one size: all slots, and the slabs that have a free one. */
interface SizeClass<Region> {
  slots: number;
  readonly open: Slab<Region>[];
}

/** Hands out small blocks of memory from larger regions, which it asks for and gives back. */
export class Slabs<Region> {
  private readonly classes = new Map<number, SizeClass<Region>>();
  private emptyBytes = 0;

  /** @param make memory of so many bytes; @param release gives it back */
  constructor(
    private readonly make: (bytes: number) => Region,
    private readonly release: (region: Region) => void,
  ) {}

  /** A block, by its slab and the place in that. @throws what `make` throws */
  allocate(blockBytes: number): { slab: Slab<Region>; place: number } {
    let size = this.classes.get(blockBytes);
    if (size === undefined) {
      size = { slots: 0, open: [] };
      this.classes.set(blockBytes, size);
    }
    const slab = size.open.at(-1) ?? this.grow(size, blockBytes);
    if (liveIn(slab) === 0) this.emptyBytes -= bytesOf(slab);
    const slot = slab.free.pop() ?? slab.begun++;
    if (liveIn(slab) === slab.slots) size.open.pop();
    return { slab, place: slot * blockBytes };
  }

  free(slab: Slab<Region>, place: number): void {
    const { open } = this.classes.get(slab.blockBytes)!;
    if (liveIn(slab) === slab.slots) open.push(slab);
    slab.free.push(place / slab.blockBytes);
    if (liveIn(slab) > 0) return;
    this.emptyBytes += bytesOf(slab);
    if (this.emptyBytes > MAX_EMPTY_BYTES) this.drop(slab);
  }

  /** Gives empty slabs back to the system. */
  clear(): void {
    for (const { open } of this.classes.values()) {
      for (const slab of [...open]) if (liveIn(slab) === 0) this.drop(slab);
    }
  }

  /** As many slots again as there are. */
  private grow(size: SizeClass<Region>, blockBytes: number): Slab<Region> {
    const slots = Math.max(1, Math.min(Math.max(size.slots, FIRST_SLOTS), Math.floor(SLAB_BYTES / blockBytes)));
    const slab = { region: this.make(slots * blockBytes), blockBytes, slots, free: [], begun: 0 };
    size.slots += slots;
    size.open.push(slab);
    this.emptyBytes += bytesOf(slab);
    return slab;
  }

  private drop(slab: Slab<Region>): void {
    const size = this.classes.get(slab.blockBytes)!;
    size.open.splice(size.open.indexOf(slab), 1);
    size.slots -= slab.slots;
    this.emptyBytes -= bytesOf(slab);
    this.release(slab.region);
  }
}
