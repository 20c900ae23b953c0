/** A file that grows, on any file system of `@opt/checkpoint`. */
import type { FileSystem } from "@opt/checkpoint";

export interface GrowingFile {
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves when the file is durable. */
  close(): Promise<void>;
}

/** A new file, in folders that are made. */
export async function createFile(path: string, given: FileSystem | undefined): Promise<GrowingFile> {
  const fileSystem = given ?? (await import("@opt/checkpoint")).localFileSystem;
  const place = fileSystem.resolve(path);
  const slash = place.lastIndexOf("/");
  if (slash > 0) await fileSystem.makeFolder(place.slice(0, slash));
  const file = await fileSystem.open(place, "create");
  let end = 0;
  return {
    async append(bytes) {
      const at = end;
      end += bytes.length;
      await file.write(bytes, at);
    },
    close: () => file.finish().finally(() => file.close()),
  };
}
