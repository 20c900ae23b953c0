/**
 * What reads, compares and rewrites checkpoints. Each is loaded when it is first called, and readers of other systems' formats when such a
 * file is met: a page that saves and resumes its own run loads little more than that takes.
 */
import type { Tensor } from "@opt/core";
import type { TensorSource } from "./format/source";
import type { ConvertOptions, ConvertResult } from "./formats/convert";
import type { Ledger, LedgerOptions } from "./ledger/ledger";
import type { DiffOptions, DiffResult } from "./read/diff";
import type { Inspection } from "./read/inspect";
import type { Loaded, LoadOptions } from "./read/load";
import type { MergeOptions, MergeResult } from "./read/merge";
import type { OpenOptions, Place } from "./read/open";
import type { LoadedPlainTensor } from "./read/places";
import type { ReshardOptions, ReshardResult } from "./read/reshard";
import type { VerifyOptions, VerifyResult } from "./read/verify";
import type { CheckpointContents } from "./save/save";
import type { CleanOptions, CleanResult } from "./save/step/clean";

/**
 * Loads a checkpoint of ours (a step, or a run's latest) or of any known system.
 * Nothing is returned, and nothing in `into` changed, unless all of it is whole: files of this machine are read once to see that, and
 * again into the tensors' own memory; `verify: false` leaves out the first. A second reading that fails leaves tensors filled in part.
 * Throws MISSING, CORRUPT, BAD_SHAPE, BAD_DTYPE, UNSUPPORTED, REFUSED, IO.
 *
 * @example
 * const { tensors, values, step } = await loadCheckpoint("runs/a");
 */
export async function loadCheckpoint(
  path: Place,
  options: LoadOptions<"plain"> & { as: "plain" },
): Promise<Loaded<LoadedPlainTensor>>;
export async function loadCheckpoint(path: Place, options?: LoadOptions): Promise<Loaded<Tensor>>;
export async function loadCheckpoint(path: Place, options?: LoadOptions<"tensor" | "plain">): Promise<Loaded<unknown>> {
  const { loadCheckpoint: load } = await import("./read/load");
  return load(path, options as LoadOptions);
}

/**
 * A safetensors file of everything that `saveCheckpoint` takes, whole; `loadCheckpoint(blob)` gives it back bit for bit. The tensors may
 * be changed when the promise has resolved. Throws BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DUPLICATE, MISSING (boxes leave a hole).
 *
 * @example
 * const blob = await checkpointBlob({ step: 3, tensors: { weight: tensor([1, 2]) } });
 * const { step } = await loadCheckpoint(blob);
 */
export async function checkpointBlob(contents: CheckpointContents): Promise<Blob> {
  const { checkpointBlob: make } = await import("./read/merge");
  return make(contents);
}

/**
 * Writes all tensors of a checkpoint, in any known format, whole into one safetensors file. Readers of `outFile` see the old one or the
 * new one. Throws MISSING where a piece is missing, CORRUPT, UNSUPPORTED, IO: then there is no file.
 */
export async function mergeCheckpoint(path: string, outFile: string, options?: MergeOptions): Promise<MergeResult> {
  const { mergeCheckpoint: merge } = await import("./read/merge");
  return merge(path, outFile, options);
}

/**
 * Writes a step for another number or layout of ranks. `source` is in any known format. Optimizer state follows its parameter. Throws MISSING, CORRUPT, BAD_ARGUMENT, BAD_SHAPE, DUPLICATE, IO: then there is no new step.
 */
export async function reshardCheckpoint(
  path: string,
  destination: string,
  options: ReshardOptions,
): Promise<ReshardResult> {
  const { reshardCheckpoint: reshard } = await import("./read/reshard");
  return reshard(path, destination, options);
}

/** Reads all of a step (or of any known format). Throws only where there is nothing to verify: MISSING, UNSUPPORTED. */
export async function verifyCheckpoint(path: string, options?: VerifyOptions): Promise<VerifyResult> {
  const { verifyCheckpoint: verify } = await import("./read/verify");
  return verify(path, options);
}

/** Compares two checkpoints tensor by tensor, whatever their layouts and formats. Throws MISSING, CORRUPT, BAD_ARGUMENT, UNSUPPORTED, IO. */
export async function diffCheckpoints(a: string, b: string, options?: DiffOptions): Promise<DiffResult> {
  const { diffCheckpoints: diff } = await import("./read/diff");
  return diff(a, b, options);
}

/** What a checkpoint holds, without reading a tensor. Throws MISSING, CORRUPT, UNSUPPORTED, REFUSED, IO. */
export async function inspectCheckpoint(path: Place, options?: OpenOptions): Promise<Inspection> {
  const { inspectCheckpoint: inspect } = await import("./read/inspect");
  return inspect(path, options);
}

/** Opens a checkpoint in any known format; reads bytes of tensors when you ask for them. Throws MISSING, UNSUPPORTED, and what the format's reader throws. */
export async function openSource(path: Place, options?: OpenOptions): Promise<TensorSource> {
  const { openSource: open } = await import("./read/open");
  return open(path, options);
}

/** Removes a run's leftovers; steps are never touched. Throws MISSING, IO. */
export async function cleanCheckpoints(folder: string, options?: CleanOptions): Promise<CleanResult> {
  const { cleanCheckpoints: clean } = await import("./save/step/clean");
  return clean(folder, options);
}

/**
 * Writes a checkpoint in another format, optimizer state included. `path` may be several files: a model and its optimizer. Parameters keep
 * their names, and state is named `<parameter>.<state>`. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED, BAD_STATE (nothing proves whose a
 * state is), DUPLICATE (two names fall together), BAD_ARGUMENT, IO.
 */
export async function convertCheckpoint(
  path: string | readonly string[],
  destination: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  const { convertCheckpoint: convert } = await import("./formats/convert");
  return convert(path, destination, options);
}

/**
 * Opens the ledger of a run: in a file, in the file `ledger.jsonl` of a folder, or without a path in memory.
 * @example
 * const book = await ledger("runs/a");
 * await book.append(1, { w: tensor([1, 2]) });
 * @throws OptError BAD_ARGUMENT, CORRUPT where the file is not a ledger, IO
 */
export async function ledger(path?: string, options?: LedgerOptions): Promise<Ledger> {
  const { ledger: open } = await import("./ledger/ledger");
  return open(path, options);
}
