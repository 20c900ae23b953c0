/** One file of named tensors, in the format that its name says. */
import { checkOptions, OptError, show } from "@opt/core";
import { bytesOf } from "../format/dtype";
import type { TensorSource } from "../format/source";
import { mergeSource, sourceOf } from "../rewrite/merge";
import type { CheckpointContents } from "../save/save";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { type ProgressCallback, reporter } from "../stores/progress";
import type { ExportOptions } from "./files/write-whole";
import { writeNpz } from "./numpy/write";
import { writeTorch } from "./torch/write";

export interface SaveWeightsOptions {
  /** Replace the file if it exists. */
  readonly overwrite?: boolean;
  readonly progress?: ProgressCallback;
  readonly fileSystem?: FileSystem;
}

const WHERE = "saveWeights";

type Write = (source: TensorSource, path: string, options: SaveWeightsOptions) => Promise<unknown>;

/** Writers by the ends of names. */
const WRITERS: Readonly<Record<string, Write>> = {
  safetensors: mergeSource,
  npz: reporting(writeNpz),
  pt: reporting(writeTorch),
  pth: reporting(writeTorch),
};

/** A writer of other systems' files, which is told of bytes alone. */
function reporting(write: (source: TensorSource, path: string, options: ExportOptions) => Promise<unknown>): Write {
  return (source, path, options) => {
    const total = [...source.tensors.values()].reduce((sum, tensor) => sum + bytesOf(tensor), 0);
    return write(source, path, { ...options, progress: reporter(options.progress, total) });
  };
}

/** See operations.ts. */
export async function saveWeights(
  path: string,
  tensors: CheckpointContents["tensors"],
  options: SaveWeightsOptions = {},
): Promise<void> {
  checkedPath(WHERE, path);
  checkOptions(WHERE, options, { overwrite: "boolean", progress: "function", fileSystem: "any" });
  const write = WRITERS[/\.(\w+)$/.exec(path)?.[1] ?? ""];
  if (write === undefined) {
    const ends = Object.keys(WRITERS).map((end) => `.${end}`);
    const problem = `the file's name must end in ${ends.join(", ")}, got ${show(path)}.`;
    throw new OptError("BAD_ARGUMENT", WHERE, problem, "For example model.safetensors.");
  }
  await write(sourceOf(WHERE, tensors), path, options);
}
