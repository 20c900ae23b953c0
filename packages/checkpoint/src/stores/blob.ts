/** Files that a user has chosen or dropped, read where they lie. */
import type { FileSystem } from "./file-system";
import { namesBelow } from "./memory";
import { fail, objectFileSystem } from "./objects";

/** A File of a browser or of Node; one of a chosen folder has its path there. */
export interface NamedBlob extends Blob {
  readonly name: string;
  readonly webkitRelativePath?: string;
}

/**
 * Reads files by the names given, or by their own (`webkitRelativePath` where a folder was chosen). For the option `fileSystem`; nothing
 * is written.
 *
 * @example
 * const fileSystem = blobFileSystem({ "model.safetensors": new Blob([]) });
 */
export function blobFileSystem(files: Readonly<Record<string, Blob>> | Iterable<NamedBlob>): FileSystem {
  const named =
    Symbol.iterator in files
      ? [...files].map((file): [string, Blob] => [file.webkitRelativePath || file.name, file])
      : Object.entries(files);
  const blobs = new Map(named);
  return objectFileSystem({
    async stat(key) {
      const blob = blobs.get(key);
      return blob && { byteLength: blob.size, modified: (blob as Partial<File>).lastModified ?? 0 };
    },
    read: async (key, target, position) => readBlob(blobs.get(key)!, target, position),
    list: async (folder) => namesBelow(blobs.keys(), folder),
  });
}

/** Fills `target`. Throws ESTALE where the file behind the Blob has changed or is gone. */
export async function readBlob(blob: Blob, target: Uint8Array, position: number): Promise<void> {
  try {
    target.set(new Uint8Array(await blob.slice(position, position + target.length).arrayBuffer()));
  } catch (error) {
    throw fail("ESTALE", `the file has changed since it was opened: ${(error as Error).message}`, error);
  }
}
