/** Files in memory, for tests and for pages that hand a file to their user. */
import type { FileSystem, FolderEntry } from "./file-system";
import { fail, type ObjectStat, objectFileSystem } from "./objects";

export interface MemoryFileSystem extends FileSystem {
  /** A file to download or to send. @throws OptError MISSING */
  blob(path: string): Blob;
}

const PART = 4 << 20;

/** Files that last as long as this object. For the option `fileSystem`. */
export function memoryFileSystem(): MemoryFileSystem {
  const objects = new Map<string, { readonly parts: readonly Uint8Array[]; readonly stat: ObjectStat }>();
  const put = (key: string, parts: readonly Uint8Array[]) => {
    const byteLength = parts.reduce((sum, { length }) => sum + length, 0);
    objects.set(key, { parts, stat: { byteLength, modified: Date.now() } });
  };
  const fileSystem = objectFileSystem({
    stat: async (key) => objects.get(key)?.stat,
    async read(key, target, position, stat) {
      const object = objects.get(key);
      if (object?.stat !== stat) throw fail("ESTALE", `${key} has been replaced`);
      let begin = 0;
      for (const part of object.parts) {
        const [from, to] = [Math.max(position, begin), Math.min(position + target.length, begin + part.length)];
        if (from < to) target.set(part.subarray(from - begin, to - begin), from - position);
        begin += part.length;
      }
    },
    list: async (folder) => namesBelow(objects.keys(), folder),
    writer: {
      partBytes: () => PART,
      put: async (key, data) => put(key, [data.slice()]),
      async putOnce(key, data) {
        if (objects.has(key)) return false;
        put(key, [data.slice()]);
        return true;
      },
      async begin(key) {
        const parts: Uint8Array[] = [];
        return {
          async part(index, data) {
            parts[index] = data.slice();
          },
          finish: async () => put(key, parts),
          abort: async () => {},
        };
      },
      remove: async (key) => void objects.delete(key),
    },
  });
  return {
    ...fileSystem,
    blob(path) {
      const object = objects.get(fileSystem.resolve(path));
      if (!object) throw fail("ENOENT", `${path} is not there`);
      return new Blob(object.parts as readonly Uint8Array<ArrayBuffer>[] as Uint8Array<ArrayBuffer>[]);
    },
  };
}

/** One level of the names in a folder, of whole keys. */
export function namesBelow(keys: Iterable<string>, folder: string): FolderEntry[] {
  const prefix = folder === "" ? "" : `${folder}/`;
  const found = new Map<string, FolderEntry>();
  for (const key of keys) {
    if (!key.startsWith(prefix)) continue;
    const [name, ...below] = key.slice(prefix.length).split("/");
    found.set(name!, { name: name!, kind: below.length > 0 ? "folder" : "file" });
  }
  return [...found.values()];
}
