/** Opens whatever stands at a path: a checkpoint of ours, or of any system that has an importer. */

import type { TensorSource } from "../format/source";
import { lookAt, openForeign } from "../import/importers";
import { type FileSystem, nodeFileSystem } from "../stores/file-system";
import { checkpointImporter, openCheckpoint } from "./native";

export interface OpenOptions {
  /** Which step of a run's folder; the latest without it. */
  readonly step?: number;
  readonly fileSystem?: FileSystem;
}

/** Throws MISSING, UNSUPPORTED (a format nobody knows), and what the format's reader throws. */
export async function openSource(path: string, options: OpenOptions = {}): Promise<TensorSource> {
  const fileSystem = options.fileSystem ?? nodeFileSystem;
  const candidate = await lookAt(path, fileSystem);
  const isOurs = checkpointImporter.recognises(candidate) || options.step !== undefined;
  return isOurs ? openCheckpoint(path, fileSystem, options.step) : openForeign(path, fileSystem);
}
