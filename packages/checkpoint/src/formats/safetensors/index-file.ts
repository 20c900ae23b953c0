/** Hugging Face's index of a set that was split by tensor: `weight_map` says which file holds which. */

import { OptError } from "@opt/core";
import { type Json, readWhole } from "../../format/source";
import type { FileSystem } from "../../stores/file-system";
import { join } from "../../stores/path";
import { parseJson } from "../bytes/json";

const LARGEST_INDEX = 64 * 1024 * 1024;

export interface IndexFile {
  /** The path of the index itself. */
  readonly index: string;
  readonly metadata: Record<string, Json>;
  readonly names: readonly [tensor: string, file: string][];
}

/** Reads the index at a path, or the only one with this ending in a folder. Throws BAD_ARGUMENT, CORRUPT, MISSING, REFUSED, IO. */
export async function readIndex(path: string, ending: string, fileSystem: FileSystem): Promise<IndexFile> {
  const index = path.endsWith(ending) ? path : await indexIn(path, ending, fileSystem);
  const root = parseJson(await readWhole(fileSystem, index, LARGEST_INDEX), index);
  const names = Object.entries(root.weight_map ?? {});
  if (names.length === 0 || names.some(([, file]) => typeof file !== "string")) {
    throw new OptError("CORRUPT", index, "weight_map must map tensors to files.", "Copy the set again.");
  }
  // Sizes are of the files, and no values of the run.
  const {
    total_size: _,
    total_parameters: __,
    ...metadata
  } = { ...(root.metadata as Record<string, Json> | undefined) };
  return { index, metadata, names: names as [string, string][] };
}

async function indexIn(folder: string, ending: string, fileSystem: FileSystem): Promise<string> {
  const found = (await fileSystem.list(folder)).map(({ name }) => name).filter((name) => name.endsWith(ending));
  const [index, ...others] = found;
  if (index !== undefined && others.length === 0) return join(folder, index);
  throw new OptError(
    "BAD_ARGUMENT",
    folder,
    `one index must be there, got ${found.join(", ")}.`,
    "Name the index itself.",
  );
}
