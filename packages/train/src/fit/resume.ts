/** Goes on from a checkpoint. */
import type { FileSystem, Loaded } from "@opt/checkpoint";
import { check, OptError, show, type Tensor } from "@opt/core";
import type { Callback } from "./events";
import { WHERE } from "./options";
import { loadRun, type RunParts } from "./run-state";

/** Where a callback keeps checkpoints. */
export interface Place {
  readonly folder: string | Blob;
  readonly fileSystem: FileSystem | undefined;
}

/** By which the callback `checkpoints` says where it saves. */
export const places = new WeakMap<Callback, Place>();

/** Those that save come last: a checkpoint has what the other callbacks have done. */
export const saversLast = (callbacks: readonly Callback[]): Callback[] =>
  [...callbacks].sort((a, b) => Number(places.has(a)) - Number(places.has(b)));

/** Returns the batches to skip, see `loadRun`. @throws OptError MISSING where `resume` names a folder without a checkpoint */
export async function resumeRun<Batch>(parts: RunParts<Batch>): Promise<number> {
  const { resume = false } = parts.options;
  if (resume === false) return 0;
  const place = parts.callbacks.map((callback) => places.get(callback)).find((found) => found !== undefined);
  const problem = () => "resume: true needs the callback checkpoints(folder), got none.";
  check(resume !== true || place, "BAD_ARGUMENT", WHERE, problem, 'Or name the folder: resume: "runs/a".');
  const loaded = await (resume === true ? ifThere(load(place!)) : load({ folder: resume, fileSystem: undefined }));
  if (loaded === undefined) return 0;
  try {
    return await loadRun(parts, loaded);
  } catch (error) {
    if (!(error instanceof OptError && error.code === "BAD_STATE")) throw error;
    const from = show(resume === true ? place!.folder : resume);
    const problem = `resume must name a checkpoint of this run, got one of ${from} that does not fit: ${error.message}`;
    throw new OptError("BAD_STATE", WHERE, problem, "Or train anew: leave out resume, and save elsewhere.", {
      cause: error,
    });
  } finally {
    for (const tensor of Object.values(loaded.tensors)) tensor.dispose();
  }
}

async function load({ folder, fileSystem }: Place): Promise<Loaded<Tensor>> {
  const { loadCheckpoint } = await import("@opt/checkpoint");
  return loadCheckpoint(folder, fileSystem ? { fileSystem } : {});
}

/** Undefined where nothing is there. */
export const ifThere = <Value>(value: Promise<Value>): Promise<Value | undefined> =>
  value.catch((error: { code?: string }) => {
    if (error.code !== "MISSING") throw error;
    return undefined;
  });
