/** The browser's own files (OPFS), which outlive the page, or a folder that the user has picked. */
import { OptError } from "@opt/core";
import { readBlob } from "./blob";
import type { FileSystem, FolderEntry } from "./file-system";
import { fail, objectFileSystem } from "./objects";

const PART = 4 << 20;

const CODES: Readonly<Record<string, string>> = {
  NotFoundError: "ENOENT",
  TypeMismatchError: "ENOTDIR",
  QuotaExceededError: "ENOSPC",
  NotAllowedError: "EACCES",
  SecurityError: "EACCES",
  NoModificationAllowedError: "EBUSY",
};

/** What `showDirectoryPicker()` gives, a FileSystemDirectoryHandle: programs without the DOM's types compile too. */
export interface PickedFolder {
  readonly kind: "directory";
  readonly name: string;
  getDirectoryHandle(name: string, options?: { create?: boolean }): Promise<PickedFolder>;
}

/**
 * Files that only pages of this origin see, or those of a folder from `showDirectoryPicker()`. For the option `fileSystem`; in browsers it
 * is the one that is taken where none is given.
 *
 * @throws OptError UNSUPPORTED, when it is first used, where the browser has none
 * @example
 * const save = () => saveCheckpoint("runs/a", { step: 1, tensors: {} }, { fileSystem: opfsFileSystem() });
 */
export function opfsFileSystem(root?: PickedFolder): FileSystem {
  let opened: Promise<FileSystemDirectoryHandle> | undefined;

  /** Undefined where it is not there and is not to be created. */
  const folderOf = async (
    names: readonly string[],
    create: boolean,
  ): Promise<FileSystemDirectoryHandle | undefined> => {
    opened ??= root ? Promise.resolve(root as FileSystemDirectoryHandle) : ownFolder();
    let folder = await opened;
    for (const name of names) {
      const next = await unlessMissing(folder.getDirectoryHandle(name, { create }));
      if (!next) return undefined;
      folder = next;
    }
    return folder;
  };
  const fileOf = async (key: string, create: boolean): Promise<FileSystemFileHandle | undefined> => {
    const names = key.split("/");
    const folder = await folderOf(names.slice(0, -1), create);
    return folder && unlessMissing(folder.getFileHandle(names.at(-1)!, { create }));
  };
  const writable = async (key: string): Promise<FileSystemWritableFileStream> => {
    const file = (await fileOf(key, true))!;
    if (typeof file.createWritable !== "function") throw unsupported("cannot write files of the page's own");
    return file.createWritable();
  };
  const put = async (key: string, data: Uint8Array) => {
    const stream = await writable(key);
    await stream.write(data as Uint8Array<ArrayBuffer>);
    await stream.close();
  };

  return objectFileSystem({
    stat: (key) =>
      coded(key, async () => {
        const file = await (await fileOf(key, false))?.getFile();
        // A name without contents is one that is being written, or was when its page died.
        if (!file || file.size === 0) return undefined;
        return { byteLength: file.size, modified: file.lastModified, version: file };
      }),
    read: (_key, target, position, { version }) => readBlob(version as File, target, position),
    list: (key) =>
      coded(key, async () => {
        const folder = await folderOf(key === "" ? [] : key.split("/"), false);
        const found: FolderEntry[] = [];
        if (!folder) return found;
        for await (const [name, handle] of entriesOf(folder)) {
          found.push({ name, kind: handle.kind === "directory" ? "folder" : "file" });
        }
        return found;
      }),
    writer: {
      partBytes: () => PART,
      put: (key, data) => coded(key, () => put(key, data)),
      putOnce: (key, data) =>
        coded(key, () =>
          alone(`@opt/checkpoint ${key}`, async () => {
            const there = await fileOf(key, false);
            if (there && (await there.getFile()).size > 0) return false;
            await put(key, data);
            return true;
          }),
        ),
      begin: (key) =>
        coded(key, async () => {
          const stream = await writable(key);
          return {
            part: (index, data) =>
              coded(key, () =>
                stream.write({ type: "write", position: index * PART, data: data as Uint8Array<ArrayBuffer> }),
              ),
            finish: () => coded(key, () => stream.close()),
            abort: () => stream.abort().catch(() => {}), // nothing of it was there
          };
        }),
      remove: (key) =>
        coded(key, async () => {
          const names = key.split("/");
          const folder = await folderOf(names.slice(0, -1), false);
          await unlessMissing(folder?.removeEntry(names.at(-1)!)).catch((error: Error) => {
            if (error.name !== "InvalidModificationError") throw error; // something has been put into it meanwhile
          });
        }),
    },
  });
}

/** TypeScript's types leave this out, or not, with its version. */
function entriesOf(folder: FileSystemDirectoryHandle): AsyncIterable<[string, FileSystemHandle]> {
  return (folder as unknown as { entries(): AsyncIterable<[string, FileSystemHandle]> }).entries();
}

async function ownFolder(): Promise<FileSystemDirectoryHandle> {
  const storage = globalThis.navigator?.storage;
  if (typeof storage?.getDirectory !== "function") throw unsupported("has no files of the page's own (OPFS)");
  return storage.getDirectory();
}

function unsupported(problem: string): OptError {
  const advice = "Serve the page from https or localhost, or use memoryFileSystem() and checkpointBlob.";
  return new OptError("UNSUPPORTED", "opfsFileSystem", `this browser, or this page, ${problem}.`, advice);
}

/** No other page of this origin does the same meanwhile, where the browser has locks. */
function alone<T>(name: string, body: () => Promise<T>): Promise<T> {
  const locks = globalThis.navigator?.locks as LockManager | undefined;
  return locks ? (locks.request(name, body) as Promise<T>) : body();
}

async function unlessMissing<T>(opening: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await opening;
  } catch (error) {
    if ((error as Error).name === "NotFoundError" || (error as Error).name === "TypeMismatchError") return undefined;
    throw error;
  }
}

/** A browser's error, with the code that a disk would give. */
async function coded<T>(key: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    const code = error instanceof DOMException ? (CODES[error.name] ?? "EIO") : undefined;
    throw code === undefined ? error : fail(code, `${key}: ${(error as Error).message}`, error);
  }
}
