/** Views of a file that importers compose: a part, parts joined end to end, and bytes that must match their checksum. */
import { crc32 } from "../../format/crc32";
import { pooled, type RandomAccess } from "../../format/source";
import type { FilePool } from "../../stores/file-pool";
import { diskError, type StoredFile } from "../../stores/file-system";
import { corrupt } from "./errors";

/** Bytes read at random positions, whoever closes them: a file, or a part of one. */
export interface ByteSource extends Pick<RandomAccess, "path" | "byteLength" | "read"> {
  /** Where the bytes lie as they are, if that is in one piece. */
  readonly stored?: { readonly file: StoredFile; readonly begin: number };
  /** All of them are compared with a checksum before any is given out. */
  readonly isChecked?: boolean;
}

/** @throws OptError CORRUPT unless `[position, position + length)` lies inside of the source: before anything is allocated for it */
export function checkRange(source: ByteSource, position: number, length: number): void {
  const end = position + length;
  if (Number.isSafeInteger(position) && Number.isSafeInteger(end) && position >= 0 && length >= 0) {
    if (end <= source.byteLength) return;
  }
  throw corrupt(
    source.path,
    `bytes ${position} to ${end} are referred to, but there are ${source.byteLength}`,
    "The file is cut short or damaged: use an intact copy.",
  );
}

/** A new array of `length` bytes from `position`. @throws OptError CORRUPT outside of the source */
export async function readBytes(source: ByteSource, position: number, length: number): Promise<Uint8Array> {
  checkRange(source, position, length);
  const bytes = new Uint8Array(length);
  await source.read(bytes, position);
  return bytes;
}

/** A file of a folder, held open by the pool only as long as it is in use. @throws OptError MISSING, IO */
export async function pooledFile(pool: FilePool, path: string): Promise<ByteSource> {
  const byteLength = await pool
    .use(path, (file) => file.size())
    .catch((error: unknown) => {
      throw diskError(error, path, "opening");
    });
  const file = pooled(pool, path);
  const source: ByteSource = {
    path,
    byteLength,
    stored: { file, begin: 0 },
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      await file.read(target, position);
    },
  };
  return source;
}

/** Bytes in memory behind the same interface. */
export function memorySource(path: string, bytes: Uint8Array): ByteSource {
  return {
    path,
    byteLength: bytes.byteLength,
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      target.set(bytes.subarray(position, position + target.byteLength));
    },
  };
}

/** The part `[begin, begin + byteLength)` of a source. @throws OptError CORRUPT if it leaves the source */
export function partOf(source: ByteSource, begin: number, byteLength: number, path = source.path): ByteSource {
  checkRange(source, begin, byteLength);
  return {
    path,
    byteLength,
    ...(source.stored ? { stored: { file: source.stored.file, begin: source.stored.begin + begin } } : {}),
    ...(source.isChecked ? { isChecked: true } : {}),
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      await source.read(target, begin + position);
    },
  };
}

/** Several sources read as one, end to end. */
export function joined(path: string, parts: readonly ByteSource[]): ByteSource {
  if (parts.length === 1) return parts[0]!;
  return {
    path,
    byteLength: parts.reduce((sum, part) => sum + part.byteLength, 0),
    isChecked: parts.every(({ isChecked }) => isChecked),
    async read(target, position) {
      checkRange(this, position, target.byteLength);
      const end = position + target.byteLength;
      let start = 0;
      for (const part of parts) {
        const from = Math.max(position, start);
        const to = Math.min(end, start + part.byteLength);
        if (from < to) await part.read(target.subarray(from - position, to - position), from - start);
        start += part.byteLength;
      }
    },
  };
}

const CRC_PIECE = 1 << 20;

/** CRC-32 of a range, read in pieces of 1 MiB. */
export async function crcOf(source: ByteSource, begin: number, end: number): Promise<number> {
  checkRange(source, begin, end - begin);
  const piece = new Uint8Array(Math.min(CRC_PIECE, end - begin));
  let crc = 0;
  for (let position = begin; position < end; position += piece.byteLength) {
    const target = piece.subarray(0, Math.min(piece.byteLength, end - position));
    await source.read(target, position);
    crc = crc32(target, crc);
  }
  return crc;
}

/** @throws OptError CORRUPT unless the checksums are equal */
export function checkCrc(path: string, expected: number, actual: number): void {
  if (actual === expected) return;
  const problem = `the checksum must be ${expected.toString(16)}, got ${actual.toString(16)}`;
  throw corrupt(path, problem, "The bytes changed since they were written: use an intact copy.");
}

/** The same bytes, checked whole against their CRC-32 before the first of them is given out. */
export function verified(source: ByteSource, expected: number): ByteSource {
  let checked: Promise<void> | undefined;
  return {
    ...source,
    isChecked: true,
    async read(target, position) {
      if (checked === undefined && position === 0 && target.byteLength === source.byteLength) {
        await source.read(target, 0);
        checkCrc(source.path, expected, crc32(target));
        checked = Promise.resolve();
        return;
      }
      checked ??= crcOf(source, 0, source.byteLength).then((actual) => checkCrc(source.path, expected, actual));
      await checked;
      await source.read(target, position);
    },
  };
}
