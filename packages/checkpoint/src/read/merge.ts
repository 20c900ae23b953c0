/** Merging: every slice of a checkpoint into one safetensors file of whole tensors. */

import { checkOptions } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import { encodeMerged } from "../format/merged";
import type { TensorSource } from "../format/source";
import { Verification } from "../format/verification";
import { elementsIn, wholeOf } from "../layout/box";
import { fileSystemOf } from "../platform/local";
import { fileOrder } from "../save/shards/plan";
import { ShardWriter } from "../save/shards/shard-writer";
import { replaceFile } from "../save/step/replace-file";
import { FilePool } from "../stores/file-pool";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { basename, dirname } from "../stores/path";
import { type ProgressCallback, reporter } from "../stores/progress";
import { OPEN_OPTIONS, type OpenOptions, useSource } from "./open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "./select";
import { besides, streamTensors, writerBuffer } from "./stream";

export interface MergeOptions extends Selection, OpenOptions {
  /** Most bytes of buffers, 64 MiB without it: how large the checkpoint is does not matter. */
  readonly maxMemory?: number;
  /** Where the result goes, if not into `fileSystem`. */
  readonly outFileSystem?: FileSystem;
  readonly progress?: ProgressCallback;
}

export interface MergeResult {
  readonly path: string;
  readonly tensors: number;
  readonly byteLength: number;
  /** Tensors that no checksum vouches for: the source has none. */
  readonly unverified: readonly string[];
}

/**
 * Writes all tensors of a checkpoint, of ours or of any known system, whole into one safetensors file; readers of `outFile` see the old
 * one or the new one. Throws MISSING where a piece is missing, CORRUPT, UNSUPPORTED, IO: then there is no file.
 */
export async function mergeCheckpoint(path: string, outFile: string, options: MergeOptions = {}): Promise<MergeResult> {
  checkedPath("mergeCheckpoint", path);
  checkedPath("mergeCheckpoint", outFile);
  checkOptions("mergeCheckpoint", options, {
    ...OPEN_OPTIONS,
    ...SELECTION_OPTIONS,
    maxMemory: "number",
    outFileSystem: "any",
    progress: "function",
  });
  return useSource(path, options, (source) => mergeSource(source, outFile, options));
}

export async function mergeSource(
  source: TensorSource,
  outFile: string,
  options: MergeOptions = {},
): Promise<MergeResult> {
  const fileSystem = fileSystemOf(options.outFileSystem ?? options.fileSystem);
  const verification = new Verification();
  const pieces = selectTensors(source, options, verification).map((tensor) => ({ tensor, box: wholeOf(tensor.shape) }));
  pieces.sort(fileOrder);
  const total = pieces.reduce((sum, { tensor, box }) => sum + elementsIn(box) * bytesPerElement(tensor.dtype), 0);
  const metadata = encodeMerged(
    source,
    pieces.map(({ tensor }) => tensor),
  );
  const byteLength = await replaceFile(fileSystem, outFile, "merging", async (temporary) => {
    const pool = new FilePool(fileSystem, "update");
    const maxMemory = besides(fileSystem.unfinished?.memory([total]) ?? 0, options.maxMemory);
    const store = { fileSystem, pool, bufferBytes: writerBuffer(maxMemory, 1), isStable: true };
    const writer = new ShardWriter(dirname(temporary), basename(temporary), pieces, store, { metadata });
    try {
      await writer.create();
      const targets = pieces.map(({ tensor, box }, i) => ({
        tensor,
        targets: [{ box, write: (bytes: Uint8Array) => writer.write(i, bytes), isQueue: true }],
      }));
      await streamTensors(targets, { progress: reporter(options.progress, total), maxMemory });
      await writer.finish();
      await pool.close();
      return writer.byteLength;
    } catch (error) {
      await writer.settle();
      await pool.close().catch(() => {}); // the first error is the one that tells
      throw error;
    }
  });
  const unverified = options.verify === false ? pieces.map(({ tensor }) => tensor.name) : verification.unverified();
  return { path: fileSystem.resolve(outFile), tensors: pieces.length, byteLength, unverified };
}
