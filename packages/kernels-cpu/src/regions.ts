/**
 * Large blocks, cut from few buffers (regions): each from the smallest free part that holds it, joined with free neighbours when it comes
 * back. Arrays of all sizes share memory then, so that a training step takes hardly a new page and makes no buffer. V8 would collect
 * garbage after every few megabytes of new buffers.
 */
import { staggeredStart } from "@opt/core/backend";
import type { Addon } from "./addon";

const PAGE = 4096;
/** A region begins in the first page of one. Two buffers in one huge page would both get small pages. */
export const HUGE_PAGE = 2 * 2 ** 20;
/** A new region is a quarter as large as all others together, within these bounds. */
const LEAST_REGION_BYTES = 4 * HUGE_PAGE;
const MOST_REGION_BYTES = 128 * HUGE_PAGE;
/** Free parts keep their pages for the next blocks, up to so many bytes. */
const MOST_KEPT_BYTES = 2 ** 30;
/** So many are always kept. More are kept only while they and the live blocks together are no more than once lived. */
const LEAST_KEPT_BYTES = 16 * 2 ** 20;

interface Region {
  /** A short view: what counts is its buffer, which may be longer than any typed array. */
  readonly view: Uint8Array;
  readonly address: number;
  /** Of its first byte in its buffer. */
  readonly byteOffset: number;
  readonly bytes: number;
}

/** A range of a region, between its neighbours by address. */
export interface Part {
  readonly region: Region;
  readonly start: number;
  bytes: number;
  isFree: boolean;
  /** Of a free part, the most bytes of it that have pages: its first ones are taken for these. */
  kept: number;
  /** Of a free part, a count of when it was given back. */
  since: number;
  previous: Part | undefined;
  next: Part | undefined;
}

export class Regions {
  /** Free parts, the smallest first; of a size the one at the lowest address. */
  readonly #free: Part[] = [];
  #totalBytes = 0;
  #keptBytes = 0;
  #liveBytes = 0;
  /** The most that ever lived. */
  #mostBytes = 0;
  #madeRegions = 0;
  #count = 0;

  constructor(private readonly addon: Addon) {}

  /** A part of so many bytes, a multiple of a cache line. Undefined where the system has no more memory. */
  allocate(bytes: number): Part | undefined {
    const part = this.#free[this.#placeOf(bytes, 0)] ?? this.#grow(bytes);
    if (part === undefined) return undefined;
    this.#take(part);
    const left = part.kept - bytes;
    if (part.bytes > bytes) this.#split(part, bytes, Math.max(0, left));
    part.isFree = false;
    this.#liveBytes += bytes;
    this.#mostBytes = Math.max(this.#mostBytes, this.#liveBytes);
    if (left < 0) this.#keepAtMost(Math.max(LEAST_KEPT_BYTES, this.#mostBytes - this.#liveBytes));
    return part;
  }

  free(part: Part): void {
    this.#liveBytes -= part.bytes;
    part.isFree = true;
    part.kept = part.bytes;
    part.since = this.#count++;
    const { previous, next } = part;
    if (next?.isFree) {
      this.#take(next);
      absorb(part, next);
    }
    if (previous?.isFree) {
      this.#take(previous);
      absorb(previous, part);
    }
    this.#add(previous?.isFree ? previous : part);
    this.#keepAtMost(MOST_KEPT_BYTES);
  }

  /** Gives back to the system what is free. */
  clear(): void {
    this.#keepAtMost(0);
    for (const part of [...this.#free]) if (isWhole(part)) this.#drop(part);
  }

  #grow(bytes: number): Part | undefined {
    const usual = Math.min(MOST_REGION_BYTES, Math.max(LEAST_REGION_BYTES, this.#totalBytes / 4));
    const region = this.#newRegion(Math.max(bytes, usual)) ?? this.#newRegion(bytes);
    if (region === undefined) return undefined;
    this.#totalBytes += region.bytes;
    const part: Part = {
      region,
      start: 0,
      bytes: region.bytes,
      isFree: true,
      kept: 0,
      since: 0,
      previous: undefined,
      next: undefined,
    };
    this.#add(part);
    return part;
  }

  #newRegion(least: number): Region | undefined {
    const bytes = Math.ceil(least / HUGE_PAGE) * HUGE_PAGE;
    const bufferBytes = bytes + HUGE_PAGE + PAGE;
    const view = newView(bufferBytes);
    if (view === undefined) return undefined;
    const first = this.addon.address(view);
    const aligned = Math.ceil(first / HUGE_PAGE) * HUGE_PAGE;
    const address = aligned + staggeredStart(this.#madeRegions++);
    this.addon.useHugePages?.(first, bufferBytes, aligned, address + bytes - aligned);
    return { view, address, byteOffset: address - first, bytes };
  }

  /** Leaves `bytes` of a part. The rest is free. */
  #split(part: Part, bytes: number, kept: number): void {
    const { region, start, since, next } = part;
    part.next = {
      region,
      start: start + bytes,
      bytes: part.bytes - bytes,
      isFree: true,
      kept,
      since,
      previous: part,
      next,
    };
    if (next !== undefined) next.previous = part.next;
    part.bytes = bytes;
    this.#add(part.next);
  }

  #add(part: Part): void {
    this.#free.splice(this.#placeOf(part.bytes, addressOf(part)), 0, part);
    this.#keptBytes += part.kept;
  }

  #take(part: Part): void {
    this.#free.splice(this.#placeOf(part.bytes, addressOf(part)), 1);
    this.#keptBytes -= part.kept;
  }

  /** In the list of free parts: of the first one that is larger, or as large and not at a lower address. */
  #placeOf(bytes: number, address: number): number {
    let [low, high] = [0, this.#free.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#free[middle]!;
      if (other.bytes < bytes || (other.bytes === bytes && addressOf(other) < address)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Gives back to the system what is free for longest, and no more than it must. */
  #keepAtMost(most: number): void {
    if (this.#keptBytes <= most) return;
    for (const part of this.#free.filter(({ kept }) => kept > 0).sort((a, b) => a.since - b.since)) {
      const excess = this.#keptBytes - most;
      if (excess <= 0) return;
      if (isWhole(part) && part.kept <= excess) this.#drop(part);
      else this.#release(part, Math.min(part.kept, Math.ceil(excess / HUGE_PAGE) * HUGE_PAGE));
    }
  }

  /** Gives back the last pages. Where the system takes none from the middle of a buffer, nothing. */
  #release(part: Part, bytes: number): void {
    if (this.addon.releasePages === undefined) return;
    const from = part.kept - bytes;
    this.addon.releasePages(addressOf(part) + from, part.bytes - from);
    part.kept = from;
    this.#keptBytes -= bytes;
  }

  #drop(part: Part): void {
    this.#take(part);
    this.#totalBytes -= part.bytes;
    this.addon.release(part.region.view);
  }
}

export const addressOf = ({ region, start }: Part) => region.address + start;
const isWhole = ({ bytes, region }: Part) => bytes === region.bytes;

/** The first byte of a new buffer. Undefined where the system has no more memory. */
export function newView(bytes: number): Uint8Array | undefined {
  try {
    return new Uint8Array(new ArrayBuffer(bytes), 0, 1);
  } catch {
    return undefined;
  }
}

/** Makes one part of two neighbours. */
function absorb(part: Part, next: Part): void {
  part.bytes += next.bytes;
  part.kept += next.kept;
  part.since = Math.max(part.since, next.since);
  part.next = next.next;
  if (next.next !== undefined) next.next.previous = part;
}
