/** A file that grows, on any file system of `@opt/checkpoint`. */
import type { FileSystem } from "@opt/checkpoint";
import { OptError } from "@opt/core";

export interface GrowingFile {
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when the file is durable. */
  close(): Promise<void>;
}

/** A new file, in folders that are made. @throws OptError IO, also from what it returns */
export async function createFile(path: string, given: FileSystem | undefined): Promise<GrowingFile> {
  const fileSystem = given ?? (await import("@opt/checkpoint")).localFileSystem;
  const place = fileSystem.resolve(path);
  const open = async () => {
    const slash = place.lastIndexOf("/");
    if (slash > 0) await fileSystem.makeFolder(place.slice(0, slash));
    return fileSystem.open(place, "create");
  };
  const file = await open().catch(failed(path));
  let end = 0;
  return {
    async append(bytes) {
      const at = end;
      end += bytes.length;
      await file.write(bytes, at).catch(failed(path));
    },
    close: () =>
      file
        .finish()
        .finally(() => file.close())
        .catch(failed(path)),
  };
}

/** The system's error as an OptError. */
const failed =
  (path: string) =>
  (cause: unknown): never => {
    if (cause instanceof OptError || !(cause instanceof Error)) throw cause;
    throw new OptError("IO", path, `writing failed: ${cause.message}.`, "Check the disk's room and permissions.", {
      cause,
    });
  };
