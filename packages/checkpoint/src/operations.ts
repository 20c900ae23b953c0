/** What reads, compares and rewrites checkpoints. Each is loaded when it is first called, so that pages stay small. */
import type { Tensor } from "@opt/core";
import type { Loaded, LoadOptions } from "./read/load";
import type { Place } from "./read/open";
import type { LoadedPlainTensor } from "./read/places";

/**
 * Loads a checkpoint of ours (a step, or a run's latest) or of any known system, also from an address.
 * Nothing is returned, and nothing in `into` changed, unless all of it is whole: files of this machine are read once to see that, and
 * again into the tensors' own memory; `verify: false` leaves out the first. A second reading that fails leaves tensors filled in part.
 *
 * @throws OptError MISSING (`into` has a name that the file lacks), BAD_ARGUMENT (a pattern matches nothing), CORRUPT, BAD_SHAPE, BAD_DTYPE,
 * DUPLICATE, UNSUPPORTED, REFUSED, IO
 * @example
 * const { tensors, values, step } = await loadCheckpoint("runs/a");
 * const remote = () => loadCheckpoint("hf://owner/name/model.safetensors", { cache: true });
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
 * be changed when the promise has resolved.
 *
 * @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DUPLICATE, MISSING (boxes leave a hole)
 * @example
 * const blob = await checkpointBlob({ step: 3, tensors: { weight: tensor([1, 2]) } });
 * const { step } = await loadCheckpoint(blob);
 */
export const checkpointBlob: typeof import("./rewrite/merge").checkpointBlob = async (...given) =>
  (await import("./rewrite/merge")).checkpointBlob(...given);

/**
 * Writes named tensors into one file, in the format that its name says: `.safetensors`, `.npz` for `numpy.load`, `.pt` and
 * `.pth` for `torch.load`. Readers see
 * no file, or all of it.
 *
 * @throws OptError BAD_ARGUMENT for another name, BAD_SHAPE, BAD_DTYPE, DUPLICATE (also for a file that is there without `overwrite: true`), IO
 * @example
 * await saveWeights("weights.safetensors", model.stateDict());
 */
export const saveWeights: typeof import("./convert/weights").saveWeights = async (...given) =>
  (await import("./convert/weights")).saveWeights(...given);

/**
 * Writes all tensors of a checkpoint, in any known format, whole into one safetensors file. `overwrite: true` replaces a file: readers see
 * the old one or the new one.
 *
 * @throws OptError DUPLICATE if one is there without it, BAD_ARGUMENT, MISSING if a piece is missing, CORRUPT, UNSUPPORTED, IO: then there is no
 * file
 */
export const mergeCheckpoint: typeof import("./rewrite/merge").mergeCheckpoint = async (...given) =>
  (await import("./rewrite/merge")).mergeCheckpoint(...given);

/**
 * Writes a step for another number or layout of ranks. `source` is in any known format. Optimizer state follows its parameter.
 *
 * @throws OptError MISSING, CORRUPT, BAD_ARGUMENT, BAD_SHAPE, DUPLICATE, IO: then there is no new step
 */
export const reshardCheckpoint: typeof import("./rewrite/reshard").reshardCheckpoint = async (...given) =>
  (await import("./rewrite/reshard")).reshardCheckpoint(...given);

/** Reads all of a step (or of any known format). Throws only where there is nothing to verify: MISSING, UNSUPPORTED. */
export const verifyCheckpoint: typeof import("./read/verify").verifyCheckpoint = async (...given) =>
  (await import("./read/verify")).verifyCheckpoint(...given);

/**
 * Compares two checkpoints tensor by tensor, whatever their layouts and formats. If their own names differ, both get the names that
 * `reshard` and `convert` give.
 *
 * @throws OptError MISSING, CORRUPT, BAD_ARGUMENT (also for a pattern that matches nothing in either), DUPLICATE, UNSUPPORTED, IO
 */
export const diffCheckpoints: typeof import("./compare/diff").diffCheckpoints = async (...given) =>
  (await import("./compare/diff")).diffCheckpoints(...given);

/** What a checkpoint holds, without reading a tensor. @throws OptError MISSING, CORRUPT, UNSUPPORTED, REFUSED, IO */
export const inspectCheckpoint: typeof import("./read/inspect").inspectCheckpoint = async (...given) =>
  (await import("./read/inspect")).inspectCheckpoint(...given);

/**
 * Opens a checkpoint in any known format; reads bytes of tensors when you ask for them.
 *
 * @throws OptError MISSING, UNSUPPORTED, and what the format's reader throws
 */
export const openSource: typeof import("./read/open").openSource = async (...given) =>
  (await import("./read/open")).openSource(...given);

/**
 * The files at a path or an address, for what is beside a checkpoint: a config.json, a tokenizer. Those of a hub are of one commit. Give
 * path and store to other functions, and they read the same version.
 *
 * @throws OptError BAD_ARGUMENT, MISSING, IO
 * @example
 * const { path, fileSystem } = await openFolder("runs");
 * console.log(await fileSystem.kind(`${path}/config.json`)); // "file", or undefined
 */
export const openFolder: typeof import("./read/open").openFolder = async (...given) =>
  (await import("./read/open")).openFolder(...given);

/** Removes a run's leftovers; steps are never touched. @throws OptError MISSING, IO */
export const cleanCheckpoints: typeof import("./save/step/clean").cleanCheckpoints = async (...given) =>
  (await import("./save/step/clean")).cleanCheckpoints(...given);

/**
 * Removes steps of a run that `keep` does not name, as `keep` of `saveCheckpoint` does. The newest step stays.
 *
 * @throws OptError BAD_ARGUMENT (also where no step has the number that `best` chooses by), MISSING, IO
 * @example
 * await pruneCheckpoints("runs/a", { keep: { last: 3, every: 1000 } }); // best: { value: "loss" } keeps the best, too
 */
export const pruneCheckpoints: typeof import("./save/step/prune").pruneCheckpoints = async (...given) =>
  (await import("./save/step/prune")).pruneCheckpoints(...given);

/**
 * Writes a checkpoint in another format, optimizer state included. `path` may be several files: a model and its optimizer. Parameters keep
 * their names, and state is named `<parameter>.<state>`.
 *
 * @throws OptError MISSING, CORRUPT, REFUSED, UNSUPPORTED, BAD_STATE (nothing proves whose a state is), DUPLICATE (two names fall
 * together), BAD_ARGUMENT, IO
 */
export const convertCheckpoint: typeof import("./convert/convert").convertCheckpoint = async (...given) =>
  (await import("./convert/convert")).convertCheckpoint(...given);

/**
 * Says in plain sentences what a resume would miss: state that is cold, moments that are missing, parameters without state, state of no
 * parameter, step counters that differ, and whether schedule, scaler and generator are there. Reads any known format, and of its tensors
 * only so much as tells zeros.
 *
 * @throws OptError MISSING, CORRUPT, UNSUPPORTED, REFUSED, IO
 * @example
 * const { findings } = await explainCheckpoint("runs/a");
 * for (const { text } of findings) console.log(text);
 */
export const explainCheckpoint: typeof import("./explain/explain").explainCheckpoint = async (...given) =>
  (await import("./explain/explain")).explainCheckpoint(...given);

/**
 * Opens the ledger of a run: in a file, in the file `ledger.jsonl` of a folder, or without a path in memory.
 * @example
 * const book = await ledger("runs/a");
 * await book.append(1, { w: tensor([1, 2]) });
 * @throws OptError BAD_ARGUMENT, CORRUPT if the file is not a ledger, IO
 */
export const ledger: typeof import("./ledger/ledger").ledger = async (...given) =>
  (await import("./ledger/ledger")).ledger(...given);

/**
 * A run that `opt-run --prove-resume` can break and compare; elsewhere it records nothing. For loops by hand: `fit` does it by itself.
 * @example
 * const run = await recordedRun("runs/recorded");
 * const saved = await loadCheckpoint(run.folder).catch(() => undefined);
 * if (saved) model.loadStateDict(saved.tensors);
 * for (let step = saved?.step ?? 0; step < 3; ) {
 *   step++; // train here
 *   if (step === run.breakAt) await saveCheckpoint(run.folder, { step, tensors: model.stateDict() });
 *   if (await run.record(step, { model: model.stateDict() })) break;
 * }
 * @throws OptError BAD_ARGUMENT, IO
 */
export const recordedRun: typeof import("./ledger/record").recordedRun = async (...given) =>
  (await import("./ledger/record")).recordedRun(...given);
