/** The formats of other systems: each looks at what stands at a path and says whether it is its own. */

import { OptError } from "@opt/core";
import {
  type Candidate,
  type Importer,
  type ImportOptions,
  openRandomAccess,
  type TensorSource,
} from "../format/source";
import { diskError, type FileSystem } from "../stores/file-system";
import { basename } from "../stores/path";
import { importers } from "./signatures";

const HEAD = 64;

/** Looks at what stands at a path. Throws MISSING, IO. */
export async function lookAt(path: string, fileSystem: FileSystem): Promise<Candidate> {
  const name = basename(path);
  const kind = await fileSystem.kind(path).catch((error: unknown) => {
    throw diskError(error, path, "looking");
  });
  if (kind === "folder") {
    const entries = await fileSystem.list(path).catch((error: unknown) => {
      throw diskError(error, path, "listing");
    });
    return { path, name, kind, head: new Uint8Array(0), byteLength: 0, entries };
  }
  if (kind !== "file") {
    throw new OptError("MISSING", path, "no file or folder is there.", "Check the path.");
  }
  const file = await openRandomAccess(fileSystem, path);
  try {
    const head = new Uint8Array(Math.min(HEAD, file.byteLength));
    await file.read(head, 0);
    return { path, name, kind, head, byteLength: file.byteLength, entries: [] };
  } finally {
    await file.close();
  }
}

/** The importer that knows what stands at a path, or undefined. Throws MISSING, IO. */
export async function detect(path: string, fileSystem: FileSystem): Promise<Importer | undefined> {
  const candidate = await lookAt(path, fileSystem);
  return importers.find((importer) => importer.recognises(candidate));
}

/** Opens a checkpoint of any foreign format. Throws UNSUPPORTED when none is recognised, and what its importer throws. */
export async function openForeign(
  path: string,
  fileSystem: FileSystem,
  options: ImportOptions = {},
): Promise<TensorSource> {
  const importer = await detect(path, fileSystem);
  if (importer === undefined) {
    const known = importers.map(({ format }) => format).join(", ");
    const advice = `Give the folder of a run or of a step, or a checkpoint of another system. Known: ${known}.`;
    throw new OptError("UNSUPPORTED", path, "no known checkpoint format is recognised.", advice);
  }
  return importer.open(path, fileSystem, options);
}
