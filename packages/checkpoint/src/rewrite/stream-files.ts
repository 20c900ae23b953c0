/** Writes safetensors files of tensors that stream past: one of whole tensors, or those of all ranks. */
import { byteLengthOf, tensorOrder, type WrittenShard } from "../format/shard";
import type { SourceTensor } from "../format/source";
import type { Box } from "../layout/box";
import {
  DEFAULT_MAX_MEMORY,
  StreamBuffers,
  type StreamedTensor,
  type StreamTarget,
  streamTensors,
} from "../read/stream";
import { ShardWriter } from "../save/shards/shard-writer";
import { FilePool } from "../stores/file-pool";
import type { FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import { PAGE } from "../stores/scratch";

export interface FileToWrite {
  readonly folder: string;
  readonly name: string;
  /** In the order of files (`fileOrder`). */
  readonly boxes: readonly { readonly tensor: SourceTensor; readonly box: Box }[];
  /** Of a file that no manifest describes. */
  readonly metadata?: Record<string, string>;
}

/** Of all that writes a checkpoint from another. */
export interface OutputOptions {
  /** Most bytes of buffers, 64 MiB without it: how large the checkpoint is does not matter. */
  readonly maxMemory?: number;
  /** Where the result goes, if not into `fileSystem`. */
  readonly outFileSystem?: FileSystem;
  readonly progress?: ProgressCallback;
}

/** For `checkOptions`. */
export const OUTPUT_OPTIONS = { maxMemory: "number", outFileSystem: "any", progress: "function" } as const;

/** What was written, in the order of `files`. Throws what readers throw, IO. */
export async function streamFiles(
  fileSystem: FileSystem,
  files: readonly FileToWrite[],
  { sha256 = false, ...options }: OutputOptions & { readonly sha256?: boolean },
): Promise<WrittenShard[]> {
  const lengths = files.map(({ boxes }) => boxes.reduce((sum, one) => sum + byteLengthOf(one), 0));
  const groups = writtenTogether(lengths, fileSystem, options.maxMemory);
  const held = (group: readonly number[]) => fileSystem.unfinished?.memory(group.map((file) => lengths[file]!)) ?? 0;
  const maxMemory = besides(Math.max(0, ...groups.map(held)), options.maxMemory);
  const bufferBytes = writerBuffer(maxMemory, Math.max(1, ...groups.map(({ length }) => length)));
  const pool = new FilePool(fileSystem, "update");
  const store = { fileSystem, pool, bufferBytes, isStable: true };
  const opened = files.map(({ folder, name, boxes, metadata }) => ({
    boxes,
    writer: new ShardWriter(folder, name, boxes, store, metadata && { metadata }),
  }));
  try {
    const tensors = new Set(files.flatMap(({ boxes }) => boxes.map(({ tensor }) => tensor)));
    const sorted = [...tensors].sort(tensorOrder);
    const total = lengths.reduce((sum, length) => sum + length, 0);
    const progress = reporter(options.progress, total);
    const buffers = new StreamBuffers(maxMemory);
    const written: WrittenShard[] = [];
    for (const group of groups) {
      const together = group.map((file) => opened[file]!);
      for (const { writer } of together) await writer.create();
      await streamTensors(withTargets(sorted, together), { progress, buffers });
      for (const { writer } of together) written.push(await writer.finish({ sha256 }));
    }
    await pool.close();
    return written;
  } catch (error) {
    for (const { writer } of opened) await writer.settle();
    await pool.close().catch(() => {}); // the first error is the one that tells
    throw error;
  }
}

class BoxTarget implements StreamTarget {
  readonly isQueue = true;

  constructor(
    readonly box: Box,
    private readonly writer: ShardWriter,
    private readonly index: number,
  ) {}

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.writer.write(this.index, bytes);
  }
}

/** What of each tensor goes where: tensors and the boxes of each file are in one order, so that one walk along all of them tells. */
function* withTargets(
  sorted: readonly SourceTensor[],
  files: readonly { readonly boxes: FileToWrite["boxes"]; readonly writer: ShardWriter }[],
): Generator<StreamedTensor> {
  const next = files.map(() => 0);
  for (const tensor of sorted) {
    const targets = Array.of<StreamTarget>(); // as in the reader, no literals
    for (const [file, { boxes, writer }] of files.entries()) {
      for (; boxes[next[file]!]?.tensor === tensor; next[file]!++)
        targets.push(new BoxTarget(boxes[next[file]!]!.box, writer, next[file]!));
    }
    yield { tensor, targets };
  }
}

/** The bytes of each of the buffers through which `writers` files are written: together a fifth of the memory. */
function writerBuffer(maxMemory = DEFAULT_MAX_MEMORY, writers: number): number {
  return Math.max(PAGE, Math.min(1 << 20, Math.floor(maxMemory / 5 / 4 / writers / PAGE) * PAGE));
}

/** What is left of a cap of which a store takes `writing` bytes to write, and sockets and the allocator about a quarter; at least a quarter. */
function besides(writing: number, maxMemory = DEFAULT_MAX_MEMORY): number {
  const quarter = Math.floor(maxMemory / 4);
  return writing === 0 ? maxMemory : Math.max(maxMemory - writing - quarter, quarter);
}

/** Files that are written in one pass: all, or as many as half of the memory holds the parts of. */
function writtenTogether(lengths: readonly number[], { unfinished }: FileSystem, maxMemory = DEFAULT_MAX_MEMORY) {
  if (!unfinished) return [[...lengths.keys()]];
  const groups: number[][] = [[]];
  for (const file of lengths.keys()) {
    const group = [...groups.at(-1)!, file];
    const bytes = unfinished.memory(group.map((one) => lengths[one]!));
    if (group.length > 1 && bytes > maxMemory / 2) groups.push([file]);
    else groups.at(-1)!.push(file);
  }
  return groups;
}
