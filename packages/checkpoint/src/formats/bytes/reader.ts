/** What the readers of all formats share: files that are open while they are in use, and closed when reading fails. */
import type { FormatReader, ImportOptions, SourceTensor, TensorSource } from "../../format/source";
import { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem, type FolderEntry } from "../../stores/file-system";
import { byName } from "./foreign-tensor";
import { type ByteSource, pooledFile } from "./source";

/** What stands at a path, to be read. */
export interface ImportSource {
  readonly path: string;
  readonly fileSystem: FileSystem;
  readonly options: ImportOptions;
  /** A file of the checkpoint, the one at `path` without another. @throws OptError MISSING, IO */
  file(path?: string): Promise<ByteSource>;
  /** What a folder of the checkpoint holds. @throws OptError MISSING, IO */
  list(path: string): Promise<readonly FolderEntry[]>;
}

/** What a reader found. */
export interface Contents extends Partial<Pick<TensorSource, "values" | "unreadable" | "skipped" | "structure">> {
  readonly tensors: Iterable<SourceTensor>;
  readonly step?: number | undefined;
  close?(): Promise<void>;
}

/** The reader of a format. @throws OptError DUPLICATE if a name occurs twice, and what `read` throws */
export function formatReader(format: string, read: (opening: ImportSource) => Promise<Contents>): FormatReader {
  return {
    format,
    async open(path, fileSystem, options = {}) {
      const pool = new FilePool(fileSystem, "read");
      let closeContents: Contents["close"];
      const close = async (): Promise<void> => {
        await closeContents?.();
        await pool.close();
      };
      try {
        const file = (other = path): Promise<ByteSource> => pooledFile(pool, other);
        const list = (folder: string): Promise<readonly FolderEntry[]> =>
          fileSystem.list(folder).catch((error: unknown) => {
            throw diskError(error, folder, "listing");
          });
        const found = await read({ path, fileSystem, options, file, list });
        const { tensors, step, values = {}, close: own, ...rest } = found;
        closeContents = own;
        const known = step === undefined ? {} : { step };
        return { format, path, tensors: byName(tensors, path), ...known, values, ...rest, close };
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}
