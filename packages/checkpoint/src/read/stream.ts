/** Streams tensors from source boxes to target boxes under a memory cap, in the order of their elements: each byte passes once. */
import { check } from "@opt/core";
import { platform } from "#platform";
import { bytesPerElement } from "../format/dtype";
import type { SourceTensor } from "../format/source";
import { type Box, elementsIn, intersect, wholeOf } from "../layout/box";
import { BoxIndex } from "../plan/box-index";
import { chunksOf, inBatches } from "../plan/chunks";
import { cutOut } from "../plan/runs";
import { allOf } from "../stores/lanes";
import { PAGE, Scratch } from "../stores/scratch";
import { PlannedSource, ReadRequest } from "./read-plan";
import { ReadPool } from "./read-pool";

export const DEFAULT_MAX_MEMORY = 64 << 20;
const LEAST_MEMORY = 64 << 10;
/** Small tensors that are read and written together have so many bytes. */
const BATCH = 8 << 20;
/** One is read while the others are on their way to the disk, which does more at once than one after the other. */
const CHUNKS = 3;
/** Of parts of memory from this length on a page more or less is nothing. */
const LARGE = 1 << 20;

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

/** The memory through which tensors stream, `maxMemory` bytes in all. @throws OptError BAD_ARGUMENT */
export class StreamBuffers {
  /** In parts: one is read while others are written. */
  readonly chunks: Scratch;
  /** For scattering on either side. */
  readonly read: Scratch;
  readonly write: Scratch;

  constructor(maxMemory = DEFAULT_MAX_MEMORY) {
    check(
      maxMemory >= LEAST_MEMORY,
      "BAD_ARGUMENT",
      "maxMemory",
      () => `must be at least ${LEAST_MEMORY} bytes, got ${maxMemory}.`,
      "Give it more.",
    );
    // As much again is for who writes.
    const part = Math.floor(maxMemory / 5);
    const chunk = Math.floor((2 * part) / CHUNKS / PAGE) * PAGE;
    this.chunks = new Scratch(CHUNKS * chunk, platform.pages);
    [this.read, this.write] = [new Scratch(part), new Scratch(part)];
  }
}

/** Streams the tensors in their order, each looked at when its turn comes. Throws what readers and writers throw. */
export async function streamTensors(
  tensors: Iterable<StreamedTensor>,
  options: { maxMemory?: number; buffers?: StreamBuffers; progress?: (bytes: number) => void } = {},
): Promise<void> {
  const { chunks, read, write } = options.buffers ?? new StreamBuffers(options.maxMemory);
  const pool = new ReadPool(read);
  const lanes = chunks.lanes(CHUNKS).map((memory) => ({ memory, free: Promise.resolve() }));
  const most = chunks.length / CHUNKS;
  let given: Promise<void> = Promise.resolve();
  let turn = 0;
  let streamed = 0;
  // Where all goes into one file, whose data begin with a page, its pages are pages of the memory: the disk takes them from there.
  const skew = most < LARGE ? 0 : PAGE;
  try {
    const parts = inParts(tensors, most - skew);
    for (const chunk of inBatches(parts, ({ byteLength }) => byteLength, Math.min(most - skew, BATCH))) {
      const lane = lanes[turn++ % CHUNKS]!;
      await lane.free;
      const begin = skew && streamed % skew;
      let filled = begin;
      for (const part of chunk) {
        part.target = lane.memory.take().subarray(filled, filled + part.byteLength);
        filled += part.byteLength;
      }
      await pool.fill(chunk.map(({ source, region, target }) => new ReadRequest(source, region, target, CHUNK)));
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

class ChunkPart {
  target: Uint8Array = NOWHERE;
  readonly byteLength: number;

  constructor(
    readonly source: PlannedSource,
    readonly region: Box,
    /** Those that share an element with the region. */
    readonly targets: readonly StreamTarget[],
  ) {
    this.byteLength = elementsIn(region) * bytesPerElement(source.tensor.dtype);
  }
}

const CHUNK = { extent: "chunk" } as const;
const NOWHERE = new Uint8Array(0);

/** Small tensors, and pieces of large ones: of at most `most` bytes. */
function* inParts(tensors: Iterable<StreamedTensor>, most: number): Generator<ChunkPart> {
  let whole = wholeOf([]);
  for (const { tensor, targets } of tensors) {
    if (targets.length === 0) continue;
    // Tensors that follow each other mostly share their shape.
    if (whole.size !== tensor.shape) whole = wholeOf(tensor.shape);
    const source = new PlannedSource(tensor);
    const elements = Math.floor(most / bytesPerElement(tensor.dtype));
    if (elementsIn(whole) <= elements) {
      yield new ChunkPart(source, whole, targets);
      continue;
    }
    const index = new BoxIndex(targets.map(({ box }) => box));
    for (const region of chunksOf(tensor.shape, elements)) {
      const touched = index.touching(region).map((i) => targets[i]!);
      if (touched.length > 0) yield new ChunkPart(source, region, touched);
    }
  }
}

/** Gives its bytes to each target; `writing` are those that targets have not taken yet. */
async function giveAll(parts: readonly ChunkPart[], scratch: Scratch, writing: Promise<void>[]): Promise<void> {
  for (const { source, region, targets, target } of parts) {
    const width = bytesPerElement(source.tensor.dtype);
    for (const to of targets) {
      const piece = pieceOf(region, target, to.box, width, scratch);
      const taken = to.write(piece);
      if (taken && to.isQueue && piece.buffer === target.buffer) writing.push(taken);
      else if (taken) await taken;
    }
  }
}

function pieceOf(region: Box, bytes: Uint8Array, box: Box, width: number, scratch: Scratch): Uint8Array {
  const shared = intersect(box, region);
  return shared ? cutOut(region, bytes, shared, width, (length) => scratch.take(length)) : NOWHERE;
}
