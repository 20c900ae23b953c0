/** Every touch of the disk goes through this seam, so that tests can fail each of them and other stores can stand in. */
import * as fs from "node:fs/promises";
import { dirname } from "node:path";
import { check, OptError } from "@opt/core";

export interface OpenFile {
  /** Fills `target` from `position`; returns the bytes read, fewer only at the end of the file. */
  read(target: Uint8Array, position: number): Promise<number>;
  /** Writes all of `data` at `position`. */
  write(data: Uint8Array, position: number): Promise<void>;
  size(): Promise<number>;
  /** Returns when the bytes are on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "other";
}

export interface FileSystem {
  /** `read`: must exist; `create`: truncates; `createNew`: must not exist; `update`: must exist, is written in place. */
  open(path: string, mode: "read" | "create" | "createNew" | "update"): Promise<OpenFile>;
  /** Creates the folder and its parents; an existing one is fine. */
  makeFolder(path: string): Promise<void>;
  list(path: string): Promise<FolderEntry[]>;
  /** What stands at the path, or undefined. */
  kind(path: string): Promise<FolderEntry["kind"] | undefined>;
  /** Milliseconds since 1970 of the last change. */
  modified(path: string): Promise<number>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or a whole folder; nothing there is fine. */
  remove(path: string): Promise<void>;
  /** Makes renames and new entries inside the folder durable. */
  syncFolder(path: string): Promise<void>;
}

const FLAGS = { read: "r", create: "w", createNew: "wx", update: "r+" } as const;

function kindOf(entry: { isFile(): boolean; isDirectory(): boolean }): FolderEntry["kind"] {
  return entry.isFile() ? "file" : entry.isDirectory() ? "folder" : "other";
}

/** What Node reads or writes at once at most, and a little less. */
const LARGEST = 1 << 30;

/** The machine's own disk. */
export const nodeFileSystem: FileSystem = {
  async open(path, mode) {
    const handle = await fs.open(path, FLAGS[mode]);
    return {
      async read(target, position) {
        let done = 0;
        while (done < target.length) {
          const { bytesRead } = await handle.read(
            target,
            done,
            Math.min(target.length - done, LARGEST),
            position + done,
          );
          if (bytesRead === 0) break;
          done += bytesRead;
        }
        return done;
      },
      async write(data, position) {
        let done = 0;
        while (done < data.length) {
          done += (await handle.write(data, done, Math.min(data.length - done, LARGEST), position + done)).bytesWritten;
        }
      },
      size: async () => (await handle.stat()).size,
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  },
  async makeFolder(path) {
    try {
      await fs.mkdir(path, { recursive: true });
    } catch (error) {
      // Of a disk that takes no folders Node says that the parent is missing.
      if (!isMissing(error)) throw error;
      await fs.mkdir(await firstMissing(path));
      throw error;
    }
  },
  async list(path) {
    const entries = await fs.readdir(path, { withFileTypes: true });
    return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
  },
  async kind(path) {
    try {
      return kindOf(await fs.stat(path));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  },
  modified: async (path) => (await fs.stat(path)).mtimeMs,
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.rm(path, { recursive: true, force: true }),
  async syncFolder(path) {
    // Windows cannot open folders; its file system journals renames itself.
    if (process.platform === "win32") return;
    const handle = await fs.open(path, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

/** Throws BAD_ARGUMENT for what cannot be a path. */
export function checkedPath(where: string, path: unknown): string {
  const isPath = typeof path === "string" && path !== "";
  check(
    isPath,
    "BAD_ARGUMENT",
    where,
    () => `a path must be a string, got ${path instanceof URL ? `the URL ${path}` : String(path)}.`,
    path instanceof URL ? "Use fileURLToPath(url)." : "For example runs/a.",
  );
  return path as string;
}

/** The outermost folder of the path that is not there. */
async function firstMissing(path: string): Promise<string> {
  const parent = dirname(path);
  const hasParent = await fs.stat(parent).then(
    () => true,
    () => false,
  );
  return hasParent || parent === path ? path : firstMissing(parent);
}

function systemCode(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** True where the error says that nothing stands at the path. */
export function isMissing(error: unknown): boolean {
  return systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR";
}

const ADVICE: Record<string, string> = {
  ENOSPC: "Free some space, or save elsewhere; older steps are untouched.",
  EDQUOT: "Your quota is used up: free some space; older steps are untouched.",
  EACCES: "Check the permissions of the folder and its parents.",
  EPERM: "Check the permissions of the folder and its parents.",
  EROFS: "The file system is read-only: use another folder.",
  ENOENT: "The folder or file is gone: check the path, and that nothing else removes it.",
  EMFILE: "Too many files are open: raise the limit (ulimit -n).",
};

/** What the disk refused, as an OptError: MISSING for a path that is not there, IO for the rest. Other errors pass through. */
export function diskError(error: unknown, where: string, doing: string): Error {
  const code = systemCode(error);
  if (!(error instanceof Error) || error instanceof OptError || code === undefined) return error as Error;
  const advice = ADVICE[code] ?? "Check the disk and its messages.";
  const kind = isMissing(error) ? "MISSING" : "IO";
  return new OptError(kind, where, `${doing} failed: ${error.message}.`, advice, { cause: error });
}
