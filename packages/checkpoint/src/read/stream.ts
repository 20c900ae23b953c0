/**
 * The executor: streams tensors from their source boxes to any target boxes under a memory cap. A tensor passes by in the order of its
 * own elements, so each box on either side is read or written once, from front to back, and its checksum can be taken on the way.
 */
import { OptError } from "@opt/core";
import { platform } from "#platform";
import { bytesPerElement } from "../format/dtype";
import type { SourceTensor } from "../format/source";
import { type Box, elementCount, elementsIn, intersect, sameBox, wholeOf } from "../layout/box";
import { BoxIndex } from "../plan/box-index";
import { copyRegion, onlyRun } from "../plan/runs";
import { allOf } from "../stores/lanes";
import { PAGE, Scratch } from "../stores/scratch";
import { readAll, TensorReader } from "./reader";

export const DEFAULT_MAX_MEMORY = 64 << 20;
const LEAST_MEMORY = 64 << 10;
/** Bytes and tensors that are read together at most: few enough that what is made for them is collected while it is young. */
const BATCH = 8 << 20;
const MOST = 256;
/** One is read while the others are on their way to the disk, which does more at once than one after the other. */
const LANES = 3;
/** Of parts of memory from this length on a page more or less is nothing. */
const LARGE = 1 << 20;

/** The bytes of each of the buffers through which `writers` files are written: together a fifth of the memory. */
export function writerBuffer(maxMemory = DEFAULT_MAX_MEMORY, writers: number): number {
  return Math.max(PAGE, Math.min(1 << 20, Math.floor(maxMemory / 5 / 4 / writers / PAGE) * PAGE));
}

export interface StreamTarget {
  readonly box: Box;
  /** Takes the next bytes of the box; they are valid until it returns, or until its promise resolves. */
  write(bytes: Uint8Array): Promise<void> | undefined;
  /** It may be given more, of this box and of others, before its promise resolves. */
  readonly isQueue?: boolean;
}

export interface StreamedTensor {
  readonly tensor: SourceTensor;
  /** Together they need not cover the tensor, nor be disjoint. */
  readonly targets: readonly StreamTarget[];
}

/** The regions, in order, that a tensor is cut into so that none has more than `most` elements. Each is one piece of its elements. */
export function* chunksOf(shape: readonly number[], most: number): Generator<Box> {
  let split = 0;
  let inner = elementsIn({ offset: [], size: shape });
  while (split < shape.length && inner > most) inner /= shape[split++]!;
  if (split === 0) {
    yield { offset: shape.map(() => 0), size: shape };
    return;
  }
  // The last dimension divided is cut into ranges; the ones before it are walked one index at a time.
  const cut = split - 1;
  const rows = Math.max(1, Math.floor(most / inner));
  const offset = shape.map(() => 0);
  const size = shape.map((length, d) => (d < cut ? 1 : length));
  for (;;) {
    for (let row = 0; row < shape[cut]!; row += rows) {
      yield { offset: offset.with(cut, row), size: size.with(cut, Math.min(rows, shape[cut]! - row)) };
    }
    let d = cut - 1;
    for (; d >= 0; d--) {
      if (++offset[d]! < shape[d]!) break;
      offset[d] = 0;
    }
    if (d < 0) return;
  }
}

/** What is left of a cap of which a store takes `writing` bytes to write, and sockets and the allocator about a quarter; at least a quarter. */
export function besides(writing: number, maxMemory = DEFAULT_MAX_MEMORY): number {
  const quarter = Math.floor(maxMemory / 4);
  return writing === 0 ? maxMemory : Math.max(maxMemory - writing - quarter, quarter);
}

/** The memory through which tensors stream, `maxMemory` bytes in all. Throws BAD_ARGUMENT. */
export class StreamBuffers {
  /** In parts: one is read while others are written. */
  readonly chunks: Scratch;
  /** For scattering on either side. */
  readonly read: Scratch;
  readonly write: Scratch;

  constructor(maxMemory = DEFAULT_MAX_MEMORY) {
    if (!(maxMemory >= LEAST_MEMORY)) {
      throw new OptError(
        "BAD_ARGUMENT",
        "maxMemory",
        `must be at least ${LEAST_MEMORY} bytes, got ${maxMemory}.`,
        "Give it more.",
      );
    }
    // As much again is for who writes.
    const part = Math.floor(maxMemory / 5);
    const lane = Math.floor((2 * part) / LANES / PAGE) * PAGE;
    this.chunks = new Scratch(LANES * lane, platform.pages);
    [this.read, this.write] = [new Scratch(part), new Scratch(part)];
  }
}

/**
 * Streams the tensors in the order given, each looked at when its turn comes, through `buffers`, else through new ones of `maxMemory` bytes.
 * Throws what readers and writers throw.
 */
export async function streamTensors(
  tensors: Iterable<StreamedTensor>,
  options: { maxMemory?: number; buffers?: StreamBuffers; progress?: (bytes: number) => void } = {},
): Promise<void> {
  const { chunks, read, write } = options.buffers ?? new StreamBuffers(options.maxMemory);
  const lanes = Array.from({ length: LANES }, (_, lane) => ({
    take: chunks.lane(lane, LANES),
    free: Promise.resolve(),
  }));
  const most = chunks.length / LANES;
  let given: Promise<void> = Promise.resolve();
  let turn = 0;
  let streamed = 0;
  // Where all goes into one file, whose data begin with a page, its pages are pages of the memory: the disk takes them from there.
  const skew = most < LARGE ? 0 : PAGE;
  try {
    for (const chunk of inChunks(tensors, most - skew, read)) {
      const lane = lanes[turn++ % LANES]!;
      await lane.free;
      const begin = skew && streamed % skew;
      let filled = begin;
      for (const part of chunk) {
        const length = elementsIn(part.region) * bytesPerElement(part.reader.tensor.dtype);
        part.target = lane.take().subarray(filled, filled + length);
        filled += length;
      }
      await readAll(chunk, read);
      await given;
      const writing: Promise<void>[] = [];
      given = giveAll(chunk, write, writing);
      lane.free = given.then(() => allOf(writing));
      lane.free.catch(() => {}); // awaited when its turn comes, or at the end
      streamed += filled - begin;
      options.progress?.(filled - begin);
    }
  } finally {
    // Nothing may still be writing when the caller tidies up.
    await Promise.allSettled(lanes.map(({ free }) => free));
  }
  await Promise.all(lanes.map(({ free }) => free));
}

function bytesIn({ shape, dtype }: SourceTensor): number {
  return elementCount(shape)! * bytesPerElement(dtype);
}

const NOWHERE = new Uint8Array(0);

class ChunkPart {
  /** Where it is read to, once its turn has come. */
  target: Uint8Array = NOWHERE;

  constructor(
    readonly reader: TensorReader,
    readonly region: Box,
    /** Those that share an element with the region. */
    readonly targets: readonly StreamTarget[],
  ) {}
}

/** What is read at once: a piece of a large tensor, or small tensors that follow each other. */
function* inChunks(tensors: Iterable<StreamedTensor>, bytes: number, scratch: Scratch): Generator<ChunkPart[]> {
  let small: ChunkPart[] = [];
  let filled = 0;
  let whole = wholeOf([]);
  for (const { tensor, targets } of tensors) {
    if (targets.length === 0) continue;
    const length = bytesIn(tensor);
    const isSmall = length <= Math.min(bytes, BATCH);
    if (small.length > 0 && (!isSmall || filled + length > Math.min(bytes, BATCH) || small.length === MOST)) {
      yield small;
      [small, filled] = [[], 0];
    }
    const reader = new TensorReader(tensor, scratch);
    if (isSmall) {
      // Tensors that follow each other mostly share their shape.
      if (whole.size !== tensor.shape) whole = wholeOf(tensor.shape);
      small.push(new ChunkPart(reader, whole, targets));
      filled += length;
      continue;
    }
    const index = new BoxIndex(targets.map(({ box }) => box));
    for (const region of chunksOf(tensor.shape, Math.floor(bytes / bytesPerElement(tensor.dtype)))) {
      const touched = index.touching(region).map((i) => targets[i]!);
      if (touched.length > 0) yield [new ChunkPart(reader, region, touched)];
    }
  }
  if (small.length > 0) yield small;
}

/** Gives its bytes to each target; `writing` are those that targets have not taken yet. */
async function giveAll(parts: readonly ChunkPart[], scratch: Scratch, writing: Promise<void>[]): Promise<void> {
  for (const { reader, region, targets, target } of parts) {
    const width = bytesPerElement(reader.tensor.dtype);
    for (const to of targets) {
      const piece = pieceOf(region, target, to.box, width, scratch);
      const taken = to.write(piece);
      if (taken && to.isQueue && piece.buffer === target.buffer) writing.push(taken);
      else if (taken) await taken;
    }
  }
}

/** The bytes of a region that belong to a box, copied together where they do not lie in one piece. */
function pieceOf(region: Box, bytes: Uint8Array, box: Box, width: number, scratch: Scratch): Uint8Array {
  const shared = intersect(box, region);
  if (!shared) return bytes.subarray(0, 0);
  if (sameBox(shared, region)) return bytes;
  const only = onlyRun(region, shared, shared, width);
  if (only) return bytes.subarray(only.from, only.from + only.length);
  const piece = scratch.take(elementsIn(shared) * width);
  copyRegion(region, bytes, shared, piece, shared, width);
  return piece;
}
