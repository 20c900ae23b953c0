/** Every touch of the disk goes through this seam, so that tests can fail each of them and other stores can stand in. */
import { check, OptError, show } from "@opt/core";

/** The checksum of bytes that a store has read, if it computed one. Otherwise the caller does. */
export interface Checksum {
  crc32?: number | undefined;
}

/** A file that contains boxes; the same object for all boxes of one file. */
export interface StoredFile {
  /** Fills all of `target` from `position`. @throws OptError CORRUPT past the end */
  read(target: Uint8Array, position: number, sum?: Checksum): Promise<void>;
}

export interface OpenFile {
  /** Fills `target` from `position`; returns the bytes read, fewer only at the end of the file. */
  read(target: Uint8Array, position: number, sum?: Checksum): Promise<number>;
  /** Writes all of `data` at `position`. */
  write(data: Uint8Array, position: number): Promise<void>;
  size(): Promise<number>;
  /** Nothing more will be written: returns when the file exists, whole and durable. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "other";
}

export interface FileSystem {
  /** One way of writing each place, wherever the process stands. */
  resolve(path: string): string;
  /** `read`: must exist; `create`: truncates; `update`: must have been created, is written in place. `byteLength` is what it will have. */
  open(path: string, mode: OpenMode, byteLength?: number): Promise<OpenFile>;
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
  /** Removes a folder that nothing is in; throws for others. Without it, folders of saves that failed stay. */
  removeEmpty?(path: string): Promise<void>;
  /** Makes renames and new entries inside the folder durable. */
  syncFolder(path: string): Promise<void>;
  /** Reading a file again costs little, and much less than memory to hold it: true of disks, not of what lies behind a network. */
  readonly isNear?: boolean;
  /** Of stores where nothing can be renamed, and a file exists once it is finished. */
  readonly unfinished?: UnfinishedFiles;
}

export type OpenMode = "read" | "create" | "update";

/** Files whose writing has begun and not ended: no reader sees them. */
export interface UnfinishedFiles {
  /** Their names, as far as the store tells: this process's at least. */
  list(folder: string): Promise<string[]>;
  /** Forgets what was written; what stood at the path before stays. */
  discard(path: string): Promise<void>;
  /** Removes a folder that nothing is in, where the store keeps such. */
  removeEmpty(folder: string): Promise<void>;
  /** Writes a small file unless one exists: then false. Of several at the same moment one gets true. */
  createOnce(path: string, data: Uint8Array | string): Promise<boolean>;
  /** Bytes that are held while files of these lengths are written at the same time. */
  memory(byteLengths: readonly number[]): number;
}

/** Writes a small file, synced. */
export async function writeBytes(fileSystem: FileSystem, path: string, bytes: Uint8Array): Promise<void> {
  const file = await fileSystem.open(path, "create", bytes.length);
  try {
    await file.write(bytes, 0);
    await file.finish();
  } finally {
    await file.close();
  }
}

/** @throws OptError BAD_ARGUMENT for what cannot be a path */
export function checkedPath(where: string, path: unknown): string {
  const isPath = typeof path === "string" && path !== "";
  const advice = path instanceof URL ? "Use fileURLToPath(url)." : "For example runs/a.";
  check(isPath, "BAD_ARGUMENT", where, () => `a path must be a string, got ${show(path)}.`, advice);
  return path as string;
}

function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  // Those of a DOMException are numbers.
  return typeof code === "string" ? code : undefined;
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
  EROFS: "It is read-only: use another folder.",
  ENOENT: "It is gone: check the path.",
  EMFILE: "Raise `ulimit -n`.",
  ESTALE: "Load it again.",
};

/** A disk's error as an OptError: MISSING for a path that is not there, IO for the rest. Other errors pass through. */
export function diskError(error: unknown, where: string, doing: string): Error {
  const code = systemCode(error);
  if (!(error instanceof Error) || error instanceof OptError || code === undefined) return error as Error;
  const advice = ADVICE[code] ?? "Check the disk and its messages.";
  const kind = isMissing(error) ? "MISSING" : "IO";
  return new OptError(kind, where, `${doing} failed: ${error.message}.`, advice, { cause: error });
}
