/** Opens whatever stands at a path: a checkpoint of ours, or of any system that has an importer. */

import { OptError } from "@opt/core";
import type { ImportOptions, TensorSource } from "../format/source";
import { detect, lookAt, openForeign } from "../import/importers";
import { type FileSystem, nodeFileSystem } from "../stores/file-system";
import { checkpointImporter, openCheckpoint } from "./native";

export interface OpenOptions extends ImportOptions {
  readonly fileSystem?: FileSystem;
}

/** Throws MISSING, UNSUPPORTED (a format nobody knows), and what the format's reader throws. */
export async function openSource(path: string, options: OpenOptions = {}): Promise<TensorSource> {
  const fileSystem = options.fileSystem ?? nodeFileSystem;
  const candidate = await lookAt(path, fileSystem);
  const isOurs =
    checkpointImporter.recognises(candidate) || (options.step !== undefined && !(await detect(path, fileSystem)));
  if (isOurs) return openCheckpoint(path, fileSystem, options.step);
  const source = await openForeign(path, fileSystem, options);
  if (options.step === undefined || source.step === options.step) return source;
  await source.close();
  const has = source.step === undefined ? "says no step" : `is of step ${source.step}`;
  throw new OptError("MISSING", path, `step ${options.step} is asked for, the checkpoint ${has}.`, "Leave step out.");
}
