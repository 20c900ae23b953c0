/**
 * One launch for a whole list of tensors: a table on the GPU says which stretches of them a block takes.
 * Tables of the last launches are kept, because a training step comes back with the same memory.
 */
import {
  blockBytes,
  byteSize,
  type DType,
  isPacked,
  PACKED_BLOCK,
  type PackedDType,
  type Slice,
} from "@opt/core/backend";
import { sliceAddress, writeInteger } from "./arguments";
import { bug, type Gpu } from "./gpu";
import { Allocator, type CudaMemory } from "./memory";
import type { Staging } from "./staging";

/** Offsets within a chunk are 32-bit, and vectors of 128 bits stay aligned from chunk to chunk. */
const SMALLEST_CHUNK = 1024;
const LARGEST_CHUNK = 65_536;
const BLOCKS_PER_MULTIPROCESSOR = 8;
const KEPT_TABLES = 64;

/** How the elements of a column's slices lie; "place" is that of a slice's first element, which counts elements. */
export type Column = DType | PackedDType | "place";

export interface ChunkTable {
  readonly memory: CudaMemory;
  readonly chunks: number;
  /** Byte offset of the first chunk of each tensor, and the number of all. */
  readonly startsOffset: number;
}

/** Elements a chunk: as many as give every multiprocessor its blocks, in powers of two. */
export function chunkLength(elements: number, multiprocessors: number): number {
  const wanted = elements / (multiprocessors * BLOCKS_PER_MULTIPROCESSOR);
  const power = 2 ** Math.ceil(Math.log2(Math.max(wanted, 1)));
  return Math.min(Math.max(power, SMALLEST_CHUNK), LARGEST_CHUNK);
}

export interface ChunkPlan {
  readonly words: Uint32Array<ArrayBuffer>;
  readonly chunks: number;
  readonly starts: readonly number[];
}

/** Rows of a word more than there are buffers: an address in each, and a length; after them the first chunk of each tensor. */
export function planChunks(
  addresses: Float64Array,
  lengths: readonly number[],
  elementBytes: readonly number[],
  multiprocessors: number,
  length = chunkLength(
    lengths.reduce((sum, each) => sum + each, 0),
    multiprocessors,
  ),
): ChunkPlan {
  const tensors = lengths.length;
  const buffers = elementBytes.length;
  const starts = [0];
  for (const each of lengths) starts.push(starts.at(-1)! + Math.ceil(each / length));
  const chunks = starts[tensors]!;
  const words = new Uint32Array(2 * (chunks * (buffers + 1) + starts.length));
  let word = 0;
  for (let t = 0; t < tensors; t++) {
    for (let from = 0; from < lengths[t]!; from += length) {
      for (let b = 0; b < buffers; b++)
        writeInteger(words, word++, elementAt(addresses[t * buffers + b]!, from, elementBytes[b]!));
      writeInteger(words, word++, Math.min(length, lengths[t]! - from));
    }
  }
  for (const start of starts) writeInteger(words, word++, start);
  return { words, chunks, starts };
}

/** An address, or a place (of 0 bytes), whose lower half counts elements modulo 2^32. */
function elementAt(start: number, from: number, bytes: number): number {
  if (bytes > 0) return start + from * bytes;
  const low = start % 2 ** 32;
  return start - low + ((low + from) % 2 ** 32);
}

interface CachedTable {
  readonly addresses: Float64Array;
  readonly lengths: readonly number[];
  readonly table: ChunkTable;
}

export class ChunkTables {
  readonly #kept = new Map<string, CachedTable>();
  /** Of their own: a table must not take the very block that the next gradient would have come back to. */
  readonly #memory: Allocator;

  constructor(
    private readonly gpu: Gpu,
    private readonly owner: Allocator,
    private readonly staging: Staging,
  ) {
    this.#memory = new Allocator(gpu);
  }

  get reservedBytes(): number {
    return this.#memory.reservedBytes;
  }

  /** The table of a list of tensors, each of slices of one length in `dtypes`: a kept one, or a new one. `stream`: on which it will be read; `chunk`: elements of one, where they are given. */
  of(tensors: readonly (readonly Slice[])[], dtypes: readonly Column[], stream: number, chunk?: number): ChunkTable {
    const { addresses, lengths } = this.#addressesOf(tensors, dtypes);
    // Gradients come back to a few places in turn: each has its table.
    const key = `${dtypes} ${chunk} ${tensors.length} ${lengths[0]} ${addresses.subarray(0, dtypes.length).join(" ")}`;
    const known = this.#kept.get(key);
    if (known !== undefined) {
      this.#kept.delete(key);
      if (same(known.addresses, addresses) && same(known.lengths, lengths)) {
        this.#kept.set(key, known);
        return known.table;
      }
      this.#memory.free(known.table.memory);
    }
    if (this.#kept.size >= KEPT_TABLES) {
      const [oldest, { table }] = this.#kept.entries().next().value!;
      this.#kept.delete(oldest);
      this.#memory.free(table.memory);
    }
    const table = this.#make(addresses, lengths, dtypes, stream, chunk);
    this.#kept.set(key, { addresses, lengths, table });
    return table;
  }

  /** One that is the caller's, and that nobody else sees. */
  fresh(tensors: readonly (readonly Slice[])[], dtypes: readonly Column[], stream: number, chunk?: number): ChunkTable {
    const { addresses, lengths } = this.#addressesOf(tensors, dtypes);
    return this.#make(addresses, lengths, dtypes, stream, chunk);
  }

  clear(): void {
    for (const { table } of this.#kept.values()) this.#memory.free(table.memory);
    this.#kept.clear();
    this.#memory.clear();
  }

  #addressesOf(tensors: readonly (readonly Slice[])[], dtypes: readonly Column[]) {
    const buffers = dtypes.length;
    const addresses = new Float64Array(tensors.length * buffers);
    const lengths = tensors.map((slices, t) => {
      const { length } = slices[0]!;
      if (slices.length !== buffers) throw bug(`the kernel takes ${buffers} buffers, got ${slices.length}.`);
      slices.forEach((slice, b) => {
        if (slice.length !== length)
          throw bug(`buffers of one tensor must be of one length, got ${length} and ${slice.length}.`);
        const column = dtypes[b]!;
        addresses[t * buffers + b] =
          column === "place" ? slice.place! : sliceAddress(this.owner, slice, column, length);
      });
      return length;
    });
    return { addresses, lengths };
  }

  #make(
    addresses: Float64Array,
    lengths: number[],
    dtypes: readonly Column[],
    stream: number,
    chunk?: number,
  ): ChunkTable {
    const { multiprocessors } = this.gpu;
    const { words, chunks, starts } = planChunks(addresses, lengths, dtypes.map(bytesOf), multiprocessors, chunk);
    const bytes = new Uint8Array(words.buffer);
    const memory = this.#memory.allocate(bytes.length);
    this.staging.upload(memory.address, bytes, stream);
    return { memory, chunks, startsOffset: bytes.length - starts.length * 8 };
  }
}

/** Of packed elements a part of their block's: chunks begin at blocks. */
function bytesOf(dtype: Column): number {
  if (dtype === "place") return 0;
  return isPacked(dtype) ? blockBytes(dtype) / PACKED_BLOCK : byteSize(dtype);
}

function same(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return a.length === b.length;
}
