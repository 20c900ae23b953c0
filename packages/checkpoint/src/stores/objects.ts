/** Stores of objects as a file system. An object exists whole or not at all, and is never renamed: a file exists from `finish` on. */
import { check } from "@opt/core";
import type { FileSystem, FolderEntry, OpenFile, OpenMode } from "./file-system";
import { LANES, Lanes, type ObjectWriter, PartBuffer } from "./object-writer";
import { basename, dirname, join } from "./path";

export type { ObjectWriter, Upload } from "./object-writer";

/** What a store must do. Errors carry the code of the system (ENOENT, EACCES, ...) or are OptErrors. */
export interface ObjectStore {
  /** Undefined where there is no object. */
  stat(key: string): Promise<ObjectStat | undefined>;
  /** Fills `target` from `position`, all of which is there. Throws ESTALE where the object is no longer the one of `stat`. */
  read(key: string, target: Uint8Array, position: number, stat: ObjectStat): Promise<void>;
  /** One level of names; "" for all. Without it, or where it throws EACCES, a step is found by its own path only. */
  list?(folder: string): Promise<FolderEntry[]>;
  /** Without it nothing is written. */
  readonly writer?: ObjectWriter;
}

export interface ObjectStat {
  readonly byteLength: number;
  /** Milliseconds since 1970. */
  readonly modified: number;
  /** Tells this version of the object from others. */
  readonly version?: unknown;
}

/** Makes a step exist; where a store does not list, its presence tells of the folder. */
export const MARKER = "manifest.json";

export function fail(code: string, message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

const keyOf = (path: string): string => {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") {
      const isInside = parts.pop() !== undefined;
      check(isInside, "BAD_ARGUMENT", path, () => "the path leaves the store.", "Name a place inside of it.");
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/");
};

/** For the option `fileSystem`. Paths are keys: names between slashes. */
export function objectFileSystem(store: ObjectStore): FileSystem {
  const { writer } = store;
  const gathering = new Map<string, PartBuffer>();
  const lanes = new Lanes(LANES);

  const writing = (path: string): ObjectWriter => {
    if (writer) return writer;
    throw fail("EROFS", `${path} can only be read`);
  };

  const list = async (path: string): Promise<FolderEntry[]> => {
    const folder = keyOf(path);
    try {
      if (store.list) return await store.list(folder);
    } catch (error) {
      unlessForbidden(error);
      if (!(await store.stat(join(folder, MARKER)))) throw error;
    }
    return (await store.stat(join(folder, MARKER))) ? [{ name: MARKER, kind: "file" }] : [];
  };

  const kind = async (path: string) => {
    const key = keyOf(path);
    if (key === "") return "folder";
    if (await store.stat(key)) return "file";
    return (await list(key)).length > 0 ? "folder" : undefined;
  };

  const openToRead = async (key: string): Promise<OpenFile> => {
    const stat = await store.stat(key);
    if (!stat) throw fail("ENOENT", `${key} is not there`);
    return {
      async read(target, position) {
        const length = Math.max(0, Math.min(target.length, stat.byteLength - position));
        if (length > 0) await store.read(key, target.subarray(0, length), position, stat);
        return length;
      },
      write: () => Promise.reject(fail("EBADF", `${key} is open for reading`)),
      size: async () => stat.byteLength,
      finish: async () => {},
      close: async () => {},
    };
  };

  const openToWrite = (key: string, gathered: PartBuffer): OpenFile => {
    let written: Promise<OpenFile> | undefined;
    return {
      async read(target, position) {
        written ??= openToRead(key);
        return (await written).read(target, position);
      },
      write: (data, position) => gathered.write(data, position),
      size: async () => gathered.byteLength,
      async finish() {
        await gathered.finish();
        if (gathering.get(key) === gathered) gathering.delete(key);
      },
      close: async () => {},
    };
  };

  const discard = async (path: string): Promise<void> => {
    const key = keyOf(path);
    const gathered = gathering.get(key);
    gathering.delete(key);
    if (gathered) await gathered.abort();
    else await writing(path).abort?.(key);
  };

  const remove = async (path: string): Promise<void> => {
    const key = keyOf(path);
    const below = (await store.list?.(key).catch(unlessForbidden)) ?? [];
    for (const { name } of below) await remove(join(key, name));
    await writing(path).remove(key);
  };

  return {
    resolve: keyOf,
    async open(path: string, mode: OpenMode, byteLength?: number) {
      const key = keyOf(path);
      if (mode === "read") return openToRead(key);
      if (mode === "update") {
        const gathered = gathering.get(key);
        if (gathered) return openToWrite(key, gathered);
        throw fail("ENOENT", `${key} is not being written`);
      }
      await gathering.get(key)?.abort();
      const gathered = new PartBuffer(key, writing(path), lanes, byteLength);
      gathering.set(key, gathered);
      return openToWrite(key, gathered);
    },
    makeFolder: async (path) => void writing(path),
    list,
    kind,
    modified: async (path) => (await store.stat(keyOf(path)))?.modified ?? 0,
    rename: (from) => Promise.reject(fail("ENOTSUP", `${from}: nothing can be renamed here`)),
    remove,
    syncFolder: async () => {},
    unfinished: {
      async list(path) {
        const folder = keyOf(path);
        const own = [...gathering.keys()].filter((key) => dirname(key) === (folder || ".")).map(basename);
        return [...new Set([...own, ...((await writing(path).unfinished?.(folder)) ?? [])])];
      },
      discard,
      removeEmpty: (path) => writing(path).remove(keyOf(path)),
      createOnce: async (path, data) =>
        writing(path).putOnce(keyOf(path), typeof data === "string" ? new TextEncoder().encode(data) : data),
      memory(byteLengths) {
        const parts = byteLengths.map((byteLength) => Math.min(byteLength, writer?.partBytes(byteLength) ?? 0));
        const gathered = parts.reduce((sum, bytes) => sum + bytes, 0);
        const all = byteLengths.reduce((sum, bytes) => sum + bytes, 0);
        // A part that is on its way is held twice: here, and by what sends it.
        return gathered + Math.min(2 * LANES * Math.max(0, ...parts), all);
      },
    },
  };
}

/** A store may give out objects without telling their names. */
function unlessForbidden(error: unknown): undefined {
  if ((error as { code?: unknown }).code !== "EACCES") throw error;
}
