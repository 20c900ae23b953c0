/** Merging: every slice of a checkpoint into one safetensors file of whole tensors. */

import { check, checkOptions } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import { checkedValues } from "../format/json/plain";
import { encodeMerged } from "../format/merged";
import type { SourceTensor, TensorSource } from "../format/source";
import { type LocalTensor, localTensors } from "../format/tensors";
import { Verification } from "../format/verification";
import { elementsIn, wholeOf } from "../layout/box";
import { fileSystemOf } from "../platform/local";
import type { CheckpointContents } from "../save/save";
import { fileOrder } from "../save/shards/plan";
import { replaceFile } from "../save/step/replace-file";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";
import { basename, dirname } from "../stores/path";
import type { ProgressCallback } from "../stores/progress";
import { OPEN_OPTIONS, type OpenOptions, useSource } from "./open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "./select";
import { streamFiles } from "./stream-files";

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
  const metadata = encodeMerged(
    source,
    pieces.map(({ tensor }) => tensor),
  );
  const byteLength = await replaceFile(fileSystem, outFile, "merging", async (temporary) => {
    const file = { folder: dirname(temporary), name: basename(temporary), boxes: pieces, metadata };
    const [written] = await streamFiles(fileSystem, [file], options);
    return written!.file.byteLength;
  });
  const unverified = options.verify === false ? pieces.map(({ tensor }) => tensor.name) : verification.unverified();
  return { path: fileSystem.resolve(outFile), tensors: pieces.length, byteLength, unverified };
}

/**
 * A safetensors file of everything that `saveCheckpoint` takes, whole; `loadCheckpoint(blob)` gives it back bit for bit. The tensors may
 * be changed when the promise has resolved. Throws BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DUPLICATE, MISSING (boxes leave a hole).
 */
export async function checkpointBlob(contents: CheckpointContents): Promise<Blob> {
  const where = "checkpointBlob";
  checkOptions(where, contents, { step: "number", tensors: "any", values: "any" });
  const { step } = contents;
  const isStep = Number.isSafeInteger(step) && step >= 0;
  check(isStep, "BAD_ARGUMENT", where, () => `step must be a whole number from 0, got ${step}.`, "Count from 0.");
  const source: TensorSource = {
    format: "memory",
    path: where,
    step,
    tensors: new Map(localTensors(contents.tensors).map((tensor) => [tensor.name, inMemory(tensor)])),
    values: checkedValues(contents.values ?? {}),
    close: async () => {},
  };
  const fileSystem = memoryFileSystem();
  await mergeSource(source, "checkpoint.safetensors", { fileSystem });
  return fileSystem.blob("checkpoint.safetensors");
}

function inMemory(tensor: LocalTensor): SourceTensor {
  const { name, dtype, shape, role, follows } = tensor;
  const boxes = (tensor.boxes ?? [wholeOf(shape)]).map((box, index) => {
    let bytes: Uint8Array | Promise<Uint8Array> | undefined;
    return {
      ...box,
      byteLength: elementsIn(box) * bytesPerElement(dtype),
      file: "memory",
      async read(target: Uint8Array, start: number) {
        bytes ??= tensor.bytes(index);
        target.set((await bytes).subarray(start, start + target.length));
      },
    };
  });
  return { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }), boxes };
}
