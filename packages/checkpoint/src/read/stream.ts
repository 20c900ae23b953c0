/**
 * The executor: streams tensors from their source boxes to any target boxes under a memory cap. A tensor passes by in the order of its
 * own elements, so each box on either side is read or written once, from front to back, and its checksum can be taken on the way.
 */
import { OptError } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import type { SourceTensor } from "../format/source";
import { type Box, elementsIn, intersect, sameBox, wholeOf } from "../layout/box";
import { BoxIndex } from "../plan/box-index";
import { copyRegion, runsOf } from "../plan/runs";
import { Scratch } from "../stores/scratch";
import { TensorReader } from "./reader";

export const DEFAULT_MAX_MEMORY = 64 << 20;
const LEAST_MEMORY = 64 << 10;

export interface StreamTarget {
  readonly box: Box;
  /** Takes the next bytes of the box; they are valid until the promise resolves. */
  write(bytes: Uint8Array): Promise<void>;
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

/** Streams the tensors in the order given. All buffers together stay under `maxMemory` bytes. Throws what readers and writers throw. */
export async function streamTensors(
  tensors: Iterable<StreamedTensor>,
  options: { maxMemory?: number; progress?: (bytes: number) => void } = {},
): Promise<void> {
  const maxMemory = options.maxMemory ?? DEFAULT_MAX_MEMORY;
  if (!(maxMemory >= LEAST_MEMORY)) {
    throw new OptError(
      "BAD_ARGUMENT",
      "maxMemory",
      `must be at least ${LEAST_MEMORY} bytes, got ${maxMemory}.`,
      "Give it more.",
    );
  }
  // Two chunks (one is written while the next is read) and one scratch for scattering on either side.
  const part = Math.floor(maxMemory / 4);
  const all = [...tensors];
  const largest = all.reduce(
    (most, { tensor }) => Math.max(most, elementsIn(wholeOf(tensor.shape)) * bytesPerElement(tensor.dtype)),
    0,
  );
  const chunks = [new Scratch(Math.min(part, largest)), new Scratch(Math.min(part, largest))] as const;
  const [readScratch, writeScratch] = [new Scratch(part), new Scratch(part)];
  let writing: Promise<void> = Promise.resolve();
  let turn = 0;
  try {
    for (const { tensor, targets } of all) {
      const width = bytesPerElement(tensor.dtype);
      const reader = new TensorReader(tensor, readScratch);
      const index = new BoxIndex(targets.map(({ box }) => box));
      for (const region of chunksOf(tensor.shape, Math.floor(part / width))) {
        const chunk = chunks[turn++ % 2]!.take(elementsIn(region) * width);
        await reader.read(region, chunk);
        await writing;
        writing = distribute(region, chunk, targets, index.touching(region), width, writeScratch);
        writing.catch(() => {}); // awaited before the next is written
        options.progress?.(chunk.length);
      }
    }
  } finally {
    // Nothing may still be writing when the caller tidies up.
    await writing.catch(() => {});
  }
  await writing;
}

async function distribute(
  region: Box,
  chunk: Uint8Array,
  targets: readonly StreamTarget[],
  touched: readonly number[],
  width: number,
  scratch: Scratch,
): Promise<void> {
  for (const index of touched) {
    const { box, write } = targets[index]!;
    const shared = intersect(box, region)!;
    if (sameBox(shared, region)) {
      await write(chunk);
      continue;
    }
    const runs = runsOf(region, shared, shared, width);
    const first = runs.next().value!;
    if (runs.next().done) {
      await write(chunk.subarray(first.from, first.from + first.length));
    } else {
      const piece = scratch.take(elementsIn(shared) * width);
      copyRegion(region, chunk, shared, piece, shared, width);
      await write(piece);
    }
  }
}
