/** Merging: every slice of a checkpoint into one safetensors file of whole tensors. */

import { checkOptions } from "@opt/core";
import { bytesPerElement } from "../format/dtype";
import { encodeMerged } from "../format/merged";
import { fileOrder } from "../format/shard";
import type { SourceTensor, TensorSource } from "../format/source";
import { type LocalTensor, localTensors } from "../format/tensors";
import { Verification } from "../format/verification";
import { elementsIn, wholeOf } from "../layout/box";
import { checkedStep } from "../layout/counts";
import { NAMING_OPTIONS, type NamingOptions, useNamed } from "../naming/named";
import { outputOf } from "../platform/local";
import { OPEN_OPTIONS, type OpenOptions } from "../read/open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "../read/select";
import { agreedValues, checkedGiven, sayValues } from "../save/ranks/values";
import type { CheckpointContents } from "../save/save";
import { replaceFile } from "../save/step/replace-file";
import { checkedPath } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";
import { basename, dirname } from "../stores/path";
import { OUTPUT_OPTIONS, type OutputOptions, streamFiles } from "./stream-files";

export interface MergeOptions extends Selection, OpenOptions, OutputOptions, NamingOptions {
  /** Replace the file if it exists. */
  readonly overwrite?: boolean;
}

/** For `checkOptions`. */
const MERGE_OPTIONS = {
  ...OPEN_OPTIONS,
  ...SELECTION_OPTIONS,
  ...OUTPUT_OPTIONS,
  ...NAMING_OPTIONS,
  overwrite: "boolean",
} as const;

export interface MergeResult {
  readonly path: string;
  readonly tensors: number;
  readonly byteLength: number;
  /** Tensors that no checksum vouches for: the source has none. */
  readonly unverified: readonly string[];
}

/** See operations.ts. */
export async function mergeCheckpoint(path: string, outFile: string, options: MergeOptions = {}): Promise<MergeResult> {
  checkedPath("mergeCheckpoint", path);
  checkedPath("mergeCheckpoint", outFile);
  checkOptions("mergeCheckpoint", options, MERGE_OPTIONS);
  return useNamed(path, options, (source, rest) => mergeSource(source, outFile, rest));
}

export async function mergeSource(
  source: TensorSource,
  outFile: string,
  options: MergeOptions = {},
): Promise<MergeResult> {
  const fileSystem = outputOf(outFile, options.outFileSystem ?? options.fileSystem);
  const verification = new Verification();
  const pieces = selectTensors(source, options, verification).map((tensor) => ({ tensor, box: wholeOf(tensor.shape) }));
  pieces.sort(fileOrder);
  const metadata = encodeMerged(
    source,
    pieces.map(({ tensor }) => tensor),
  );
  const byteLength = await replaceFile(
    fileSystem,
    outFile,
    { doing: "merging", overwrite: options.overwrite },
    async (temporary) => {
      const file = { folder: dirname(temporary), name: basename(temporary), boxes: pieces, metadata };
      const [written] = await streamFiles(fileSystem, [file], options);
      return written!.file.byteLength;
    },
  );
  const unverified = options.verify === false ? pieces.map(({ tensor }) => tensor.name) : verification.unverified();
  return { path: fileSystem.resolve(outFile), tensors: pieces.length, byteLength, unverified };
}

/** See operations.ts. */
export async function checkpointBlob(contents: CheckpointContents): Promise<Blob> {
  const where = "checkpointBlob";
  checkOptions(where, contents, { step: "number", tensors: "any", values: "any", rankValues: "any" });
  const given = checkedGiven(contents);
  const source: TensorSource = {
    ...sourceOf(where, contents.tensors),
    step: checkedStep(where, contents.step),
    values: agreedValues(given, [sayValues(given)]),
  };
  const fileSystem = memoryFileSystem();
  await mergeSource(source, "checkpoint.safetensors", { fileSystem });
  return fileSystem.blob("checkpoint.safetensors");
}

/** Tensors of this process as a source. */
export function sourceOf(where: string, tensors: CheckpointContents["tensors"]): TensorSource {
  const named = localTensors(tensors, where).map((tensor) => [tensor.name, inMemory(tensor)] as const);
  return { format: "memory", path: where, tensors: new Map(named), values: {}, close: async () => {} };
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
