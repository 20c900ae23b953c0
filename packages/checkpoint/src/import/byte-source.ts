import { type FileHandle, open } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { OptError } from "@opt/core";

/** Random access to bytes that may be too many to hold: a file, or a part of one. */
export interface ByteSource {
  /** What errors call it: the path. */
  readonly name: string;
  readonly size: number;
  /** Exactly `length` bytes from `offset`. Throws CORRUPT when the range leaves the source, IO when the system refuses. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** A file that is read in ranges; `close` gives its descriptor back. */
export interface FileSource extends ByteSource {
  close(): Promise<void>;
}

function checkRange(source: ByteSource, offset: number, length: number): void {
  if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0) {
    throw new OptError("CORRUPT", source.name, `byte range ${offset}+${length} is not a range.`, "Use an intact copy.");
  }
  if (offset + length > source.size) {
    throw new OptError(
      "CORRUPT",
      source.name,
      `bytes ${offset}..${offset + length} are named, got a file of ${source.size} bytes.`,
      "The file is cut short or damaged: use an intact copy.",
    );
  }
}

/** Opens a file for ranged reads. Throws MISSING or IO. */
export async function openFileSource(path: string): Promise<FileSource> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, "r");
    const stat = await handle.stat();
    if (!stat.isFile()) throw new OptError("IO", path, "a file is needed, got something else.", "Name a file.");
    return fileSource(path, handle, stat.size);
  } catch (error) {
    await handle?.close();
    throw fileError(path, error);
  }
}

function fileSource(name: string, handle: FileHandle, size: number): FileSource {
  return {
    name,
    size,
    async read(offset, length) {
      checkRange(this, offset, length);
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const { bytesRead } = await handle.read(bytes, done, length - done, offset + done).catch((error: unknown) => {
          throw fileError(name, error);
        });
        if (bytesRead === 0) {
          throw new OptError(
            "CORRUPT",
            name,
            `the file ended at byte ${offset + done}.`,
            "It changed while it was read.",
          );
        }
        done += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
}

/** What the file system said, in our words: MISSING when nothing is there, IO otherwise. */
export function fileError(path: string, error: unknown): OptError {
  if (error instanceof OptError) return error;
  const code = (error as { code?: string }).code ?? String(error);
  const missing = code === "ENOENT" || code === "ENOTDIR";
  return new OptError(missing ? "MISSING" : "IO", path, `the file cannot be read, got ${code}.`, "Check the path.", {
    cause: error,
  });
}

/** Bytes in memory behind the same interface. */
export function memorySource(name: string, bytes: Uint8Array): ByteSource {
  return {
    name,
    size: bytes.byteLength,
    async read(offset, length) {
      checkRange(this, offset, length);
      return bytes.slice(offset, offset + length);
    },
  };
}

/** The part `[offset, offset + size)` of a source. Throws CORRUPT when it leaves the source. */
export function partOf(source: ByteSource, offset: number, size: number, name = source.name): ByteSource {
  checkRange(source, offset, size);
  return {
    name,
    size,
    async read(at, length) {
      checkRange(this, at, length);
      return source.read(offset + at, length);
    },
  };
}

/** Several sources read as one, end to end. */
export function joined(name: string, parts: readonly ByteSource[]): ByteSource {
  if (parts.length === 1) return parts[0]!;
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  return {
    name,
    size,
    async read(offset, length) {
      checkRange(this, offset, length);
      const bytes = new Uint8Array(length);
      let start = 0;
      for (const part of parts) {
        const from = Math.max(offset, start);
        const to = Math.min(offset + length, start + part.size);
        if (from < to) bytes.set(await part.read(from - start, to - from), from - offset);
        start += part.size;
      }
      return bytes;
    },
  };
}

const CRC_PIECE = 1 << 20;

/** CRC-32 of a range, in pieces of 1 MiB. */
export async function crcOf(source: ByteSource, offset = 0, length = source.size - offset): Promise<number> {
  checkRange(source, offset, length);
  let crc = 0;
  for (let done = 0; done < length; done += CRC_PIECE) {
    crc = crc32(await source.read(offset + done, Math.min(CRC_PIECE, length - done)), crc);
  }
  return crc;
}

/** The same bytes, refused with CORRUPT unless their CRC-32 is `expected`: checked whole before the first part is given out. */
export function verified(source: ByteSource, expected: number): ByteSource {
  let checked: Promise<void> | undefined;
  const check = (actual: number): void => {
    if (actual === expected) return;
    throw new OptError(
      "CORRUPT",
      source.name,
      `the checksum must be ${expected.toString(16)}, got ${actual.toString(16)}.`,
      "The bytes changed since they were written: use an intact copy.",
    );
  };
  return {
    name: source.name,
    size: source.size,
    async read(offset, length) {
      if (checked === undefined && offset === 0 && length === source.size) {
        const bytes = await source.read(0, length);
        check(crc32(bytes));
        checked = Promise.resolve();
        return bytes;
      }
      checked ??= crcOf(source).then(check);
      await checked;
      return source.read(offset, length);
    },
  };
}
